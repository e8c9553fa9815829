/**
 * How a world refuses, learnt from its answers: which openings answered actions that could not be
 * carried out. So a predicted answer can be read without knowing the world's words.
 */

/** An answer of the world, and whether the action was carried out. */
export interface WorldAnswer {
  readonly observation: string;
  readonly valid: boolean;
}

/** Reads answers. */
export interface RefusalReader {
  /** The share of refusals among all answers. */
  readonly base: number;
  /** The chance that an answer which begins like this is a refusal. */
  chance(text: string): number;
}

/** Words by which an answer is known at most. */
const LONGEST = 8;
/** An opening says something if so many answers began with it. */
const ENOUGH = 5;

interface Count {
  refused: number;
  all: number;
}

/** A reader of answers like these. */
export function refusalReader(answers: Iterable<WorldAnswer>): RefusalReader {
  const counts = new Map<string, Count>([["", { refused: 0, all: 0 }]]);
  for (const { observation, valid } of answers)
    for (const opening of openings(observation)) {
      const count = counts.get(opening) ?? { refused: 0, all: 0 };
      count.all += 1;
      if (!valid) count.refused += 1;
      counts.set(opening, count);
    }
  const all = counts.get("")!;
  // One more answer of each kind, so that no chance is 0 or 1.
  const base = (all.refused + 1) / (all.all + 2);
  return {
    base,
    chance(text) {
      let known: Count | undefined;
      for (const opening of openings(text)) {
        const count = counts.get(opening);
        if (count === undefined || count.all < ENOUGH) break;
        known = count;
      }
      return known === undefined ? base : (known.refused + base) / (known.all + 1);
    },
  };
}

/** The beginnings of a text, from none of its words on; all numbers are the same word. */
function openings(text: string): readonly string[] {
  const words = (text.match(/\p{L}+|\d+|[^\s\p{L}\d]/gu) ?? [])
    .slice(0, LONGEST)
    .map((word) => (/^\d/.test(word) ? "#" : word));
  return Array.from({ length: words.length + 1 }, (_, count) => words.slice(0, count).join(" "));
}

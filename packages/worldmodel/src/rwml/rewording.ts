/** Rule-based paraphrases of a state, and altered copies of it, so that no network is needed. */
import type { Random } from "@pawl/core/random.js";

/** Phrases of text worlds and their paraphrases. */
const PHRASES: readonly (readonly [RegExp, string])[] = [
  [/\byou hold nothing\b/gi, "your hands are empty"],
  [/\byou hold (?=\w)/gi, "you are carrying "],
  [/\byou carry\b/gi, "you are holding"],
  [/\bis (now )?closed\b/gi, "is shut"],
  [/\bis open now\b/gi, "now stands open"],
  [/\bis open\b/gi, "stands open"],
  [/\bis (\w+) now\b/gi, "has become $1"],
  [/\byou walk into\b/gi, "you enter"],
  [/\byou are in\b/gi, "you find yourself in"],
  [/\byou arrive at\b/gi, "you are now at"],
  [/\byou see\b/gi, "you notice"],
  [/\byou pick up\b/gi, "you take"],
  [/\byou put\b/gi, "you place"],
  [/\byou open\b/gi, "you have opened"],
  [/\byou close\b/gi, "you have closed"],
  [/\btaken from\b/gi, "you took it from"],
  [/\bnow on\b/gi, "there are now on"],
  [/\bnothing happens\b/gi, "nothing changes"],
  [/\bthere is no\b/gi, "there is not any"],
  [/\bcannot\b/gi, "are unable to"],
  [/\bdo not\b/gi, "don't"],
  [/\balready\b/gi, "by now"],
];

/** The same text with different spacing and case, like a careless copy. */
export function respell(text: string): string {
  return text.toLowerCase().replace(/\s+/g, " ").replace(/\.$/, "").trim();
}

/** A paraphrase: other phrases, lists in another order; undefined if no rule applies. */
export function paraphrase(text: string, random: Random): string | undefined {
  let reworded = reorderLists(text, random);
  for (const [phrase, other] of PHRASES) reworded = reworded.replace(phrase, other);
  if (reworded === text) return undefined;
  return reworded.replace(/(^|[.!?:]\s+)([a-z])/g, (_, before: string, first: string) =>
    before.endsWith(": ") ? `${before}${first}` : `${before}${first.toUpperCase()}`,
  );
}

/** Reorders lists of three or more things, after a colon or a verb. */
function reorderLists(text: string, random: Random): string {
  return text.replace(/(: | see | notice )([^.:\n]+,[^.:\n]+)(?=[.\n]|$)/g, (_, before, list) => {
    const items = String(list)
      .split(/,\s*(?:and )?/)
      .filter((item) => item !== "");
    const last = items.length > 2 && / and /.test(String(list)) ? ", and " : ", ";
    const order = random.shuffle(items);
    return `${String(before)}${order.slice(0, -1).join(", ")}${last}${order.at(-1)}`;
  });
}

/** Things with a number, like "drawer 2": the facts of text worlds. */
const THING = /\b[a-z]+ \d+\b/gi;
const WORD = /\b[\p{L}\d]{4,}\b/gu;

/**
 * The text with one fact replaced by one from another state; undefined if there is nothing to
 * replace.
 */
export function alter(text: string, states: readonly string[], random: Random): string | undefined {
  for (const pattern of [THING, WORD]) {
    const own = [...text.matchAll(pattern)];
    const foreign = [...random.pick(states).matchAll(pattern)]
      .map(([found]) => found)
      .filter((found) => !text.includes(found));
    if (own.length === 0 || foreign.length === 0) continue;
    const { index, 0: found } = random.pick(own);
    return `${text.slice(0, index)}${random.pick(foreign)}${text.slice(index + found.length)}`;
  }
  return undefined;
}

/**
 * Similarity of texts: the ratio of Python's `difflib.SequenceMatcher(None, a, b).ratio()`, number for
 * number, because the reference implementation of GiGPO clusters observations by it.
 *
 *   ratio = 2·M / (|a| + |b|)
 *
 * M counts the characters in matching blocks (Ratcliff and Obershelp): the longest common block, then the
 * same to its left and to its right. As in difflib ("autojunk"), where b has 200 characters or more, a
 * character that makes up more than 1 % of it can extend a block but not start one, so the ratio is not
 * symmetric. Lengths and characters are Unicode code points.
 */

/** A text to compare many others with. */
export interface Matcher {
  /** The ratio with the text as difflib's `b` and the other as its `a`. */
  ratio(other: string): number;
  /** Whether the ratio reaches the threshold; cheap bounds are asked first. */
  isSimilar(other: string, threshold: number): boolean;
}

/** Prepares a text for comparisons. */
export function createMatcher(text: string): Matcher {
  const b = codePoints(text);
  const positions = new Map<number, number[]>();
  b.forEach((character, j) => {
    const list = positions.get(character);
    if (list === undefined) positions.set(character, [j]);
    else list.push(j);
  });
  const counts = new Map([...positions].map(([character, list]) => [character, list.length]));
  if (b.length >= 200) {
    const popular = Math.floor(b.length / 100) + 1;
    for (const [character, count] of counts) if (count > popular) positions.delete(character);
  }

  const ratioOf = (matches: number, length: number) =>
    length + b.length === 0 ? 1 : (2 * matches) / (length + b.length);
  const exactRatio = (a: Int32Array) => ratioOf(matchingCharacters(a, b, positions), a.length);
  return {
    ratio: (other) => exactRatio(codePoints(other)),
    isSimilar(other, threshold) {
      const a = codePoints(other);
      return (
        ratioOf(Math.min(a.length, b.length), a.length) >= threshold &&
        ratioOf(sharedCharacters(a, counts), a.length) >= threshold &&
        exactRatio(a) >= threshold
      );
    },
  };
}

function codePoints(text: string): Int32Array {
  return Int32Array.from(text, (character) => character.codePointAt(0)!);
}

/** Characters in common, order aside: no fewer than any matching blocks can hold. */
function sharedCharacters(a: Int32Array, counts: ReadonlyMap<number, number>): number {
  const left = new Map(counts);
  let shared = 0;
  for (const character of a) {
    const count = left.get(character) ?? 0;
    if (count > 0) shared++;
    left.set(character, count - 1);
  }
  return shared;
}

/** M: the number of characters in matching blocks. */
function matchingCharacters(
  a: Int32Array,
  b: Int32Array,
  positions: ReadonlyMap<number, readonly number[]>,
): number {
  // Entry j + 1 is the length of the common run that ends at b[j] and at the current, or last, a[i].
  let runs = new Int32Array(b.length + 1);
  let previous = new Int32Array(b.length + 1);
  let matches = 0;
  const waiting: [number, number, number, number][] = [[0, a.length, 0, b.length]];
  for (let range = waiting.pop(); range !== undefined; range = waiting.pop()) {
    const [aLow, aHigh, bLow, bHigh] = range;
    let bestA = aLow;
    let bestB = bLow;
    let size = 0;
    for (let i = aLow; i < aHigh; i++) {
      for (const j of positions.get(a[i]!) ?? []) {
        if (j < bLow) continue;
        if (j >= bHigh) break;
        const run = previous[j]! + 1;
        runs[j + 1] = run;
        if (run > size) {
          bestA = i - run + 1;
          bestB = j - run + 1;
          size = run;
        }
      }
      [previous, runs] = [runs, previous];
      // Only what the row before last left behind is not 0.
      for (const j of i > aLow ? (positions.get(a[i - 1]!) ?? []) : []) runs[j + 1] = 0;
    }
    for (const j of aHigh > aLow ? (positions.get(a[aHigh - 1]!) ?? []) : []) previous[j + 1] = 0;
    while (bestA > aLow && bestB > bLow && a[bestA - 1] === b[bestB - 1]) {
      bestA--;
      bestB--;
      size++;
    }
    while (bestA + size < aHigh && bestB + size < bHigh && a[bestA + size] === b[bestB + size])
      size++;
    if (size === 0) continue;
    matches += size;
    waiting.push([aLow, bestA, bLow, bestB], [bestA + size, aHigh, bestB + size, bHigh]);
  }
  return matches;
}

/**
 * Similarity of texts: the ratio of Python's `difflib.SequenceMatcher(None, a, b).ratio()`,
 * exactly, because the reference implementation of GiGPO clusters observations by it.
 *
 *   ratio = 2·M / (|a| + |b|)
 *
 * M counts the characters in matching blocks (Ratcliff and Obershelp): the longest common block,
 * then the same to its left and to its right. As in difflib ("autojunk"), if b has 200 characters
 * or more, a character that makes up more than 1 % of it can extend a block but not start one, so
 * the ratio is not symmetric. Lengths and characters are Unicode code points.
 */

/** A text prepared for comparisons. */
export interface ComparableText {
  readonly characters: Int32Array;
  /** How often each character occurs. */
  readonly counts: ReadonlyMap<number, number>;
  /** Where each character that may start a matching block occurs. */
  readonly positions: ReadonlyMap<number, readonly number[]>;
}

/** Prepares a text for comparisons. */
export function comparable(text: string): ComparableText {
  const characters = codePoints(text);
  const positions = new Map<number, number[]>();
  characters.forEach((character, i) => {
    const list = positions.get(character);
    if (list === undefined) positions.set(character, [i]);
    else list.push(i);
  });
  const counts = new Map([...positions].map(([character, list]) => [character, list.length]));
  if (characters.length >= 200) {
    const popular = Math.floor(characters.length / 100) + 1;
    for (const [character, count] of counts) if (count > popular) positions.delete(character);
  }
  return { characters, counts, positions };
}

/** The similarity of two texts, between 0 and 1. */
export function ratio(a: ComparableText, b: ComparableText): number {
  return ratioOf(matchingCharacters(a, b, 0), a, b);
}

/** Whether the ratio reaches the threshold; cheap upper bounds are checked first. */
export function isSimilar(a: ComparableText, b: ComparableText, threshold: number): boolean {
  const reaches = (matches: number) => ratioOf(matches, a, b) >= threshold;
  const wanted = (threshold * (a.characters.length + b.characters.length)) / 2 - 1;
  return (
    reaches(Math.min(a.characters.length, b.characters.length)) &&
    reaches(sharedCharacters(a, b)) &&
    reaches(matchingCharacters(a, b, wanted))
  );
}

function ratioOf(matches: number, a: ComparableText, b: ComparableText): number {
  const length = a.characters.length + b.characters.length;
  return length === 0 ? 1 : (2 * matches) / length;
}

function codePoints(text: string): Int32Array {
  const points = new Int32Array(text.length);
  let count = 0;
  for (let i = 0; i < text.length; i++) {
    const point = text.codePointAt(i)!;
    points[count++] = point;
    // A character beyond 16 bits takes two places in the string.
    if (point > 0xffff) i++;
  }
  return points.subarray(0, count);
}

/** Characters in common in any order: an upper bound on the characters in matching blocks. */
function sharedCharacters(a: ComparableText, b: ComparableText): number {
  let shared = 0;
  for (const [character, count] of a.counts)
    shared += Math.min(count, b.counts.get(character) ?? 0);
  return shared;
}

/** M: the number of characters in matching blocks; stops early once M must be below `wanted`. */
function matchingCharacters(left: ComparableText, right: ComparableText, wanted: number): number {
  const a = left.characters;
  const b = right.characters;
  const { positions } = right;
  // Entry j + 1 is the length of the common run that ends at b[j] and at the current or last a[i].
  let runs = new Int32Array(b.length + 1);
  let previous = new Int32Array(b.length + 1);
  const waiting: Range[] = [[0, a.length, 0, b.length]];
  // What was found, and what may still be found in the pending ranges.
  let possible = mostMatches(waiting[0]!);
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
    possible += size - mostMatches(range);
    if (size > 0) {
      const before: Range = [aLow, bestA, bLow, bestB];
      const after: Range = [bestA + size, aHigh, bestB + size, bHigh];
      possible += mostMatches(before) + mostMatches(after);
      waiting.push(before, after);
    }
    if (possible < wanted) break;
  }
  return possible;
}

/** Parts of both texts that are matched with each other: a from, a to, b from, b to. */
type Range = readonly [number, number, number, number];

function mostMatches([aLow, aHigh, bLow, bHigh]: Range): number {
  return Math.min(aHigh - aLow, bHigh - bLow);
}

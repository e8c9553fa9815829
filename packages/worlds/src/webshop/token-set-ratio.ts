/**
 * The similarity of two short texts as sets of words, from 0 to 100: thefuzz's `token_set_ratio`
 * over Python's difflib, whose matching blocks (Ratcliff–Obershelp) differ from edit distance.
 */

/** The similarity of two texts by their common words and the remaining words of each. */
export function tokenSetRatio(a: string, b: string): number {
  const left = words(a);
  const right = words(b);
  if (left.size === 0 || right.size === 0) return 0;
  const common = [...left].filter((word) => right.has(word)).sort(byCodePoint);
  const shared = common.join(" ");
  const all = (own: ReadonlySet<string>, other: ReadonlySet<string>): string =>
    [...common, ...[...own].filter((word) => !other.has(word)).sort(byCodePoint)].join(" ");
  const first = all(left, right);
  const second = all(right, left);
  return Math.max(ratio(shared, first), ratio(shared, second), ratio(first, second));
}

function words(text: string): ReadonlySet<string> {
  const cleaned = text
    .replace(/[\u0080-\u00ff]/g, "")
    .replace(/[^\p{L}\p{N}_]/gu, " ")
    .toLowerCase();
  return new Set(cleaned.split(" ").filter((word) => word !== ""));
}

function byCodePoint(a: string, b: string): number {
  const left = Array.from(a, (one) => one.codePointAt(0)!);
  const right = Array.from(b, (one) => one.codePointAt(0)!);
  for (let at = 0; at < Math.min(left.length, right.length); at++) {
    if (left[at] !== right[at]) return left[at]! - right[at]!;
  }
  return left.length - right.length;
}

function ratio(a: string, b: string): number {
  if (a === b) return 100;
  if (a === "" || b === "") return 0;
  const left = Array.from(a);
  const right = Array.from(b);
  return roundHalfEven(100 * ((2 * matched(left, right)) / (left.length + right.length)));
}

function roundHalfEven(value: number): number {
  const floor = Math.floor(value);
  if (value - floor !== 0.5) return Math.round(value);
  return floor % 2 === 0 ? floor : floor + 1;
}

/**
 * Characters in the matching blocks: the longest common run, then recursively left and right of it.
 */
function matched(a: readonly string[], b: readonly string[]): number {
  const places = placesOf(b);
  let total = 0;
  const open: [number, number, number, number][] = [[0, a.length, 0, b.length]];
  for (let part = open.pop(); part !== undefined; part = open.pop()) {
    const [fromA, toA, fromB, toB] = part;
    const [atA, atB, size] = longestRun(a, b, places, part);
    if (size === 0) continue;
    total += size;
    open.push([fromA, atA, fromB, atB], [atA + size, toA, atB + size, toB]);
  }
  return total;
}

/** The positions of each character; like difflib, without the most frequent ones of a long text. */
function placesOf(b: readonly string[]): ReadonlyMap<string, readonly number[]> {
  const places = new Map<string, number[]>();
  for (const [at, character] of b.entries()) {
    const known = places.get(character);
    if (known === undefined) places.set(character, [at]);
    else known.push(at);
  }
  if (b.length >= 200) {
    const most = Math.floor(b.length / 100) + 1;
    for (const [character, found] of places) if (found.length > most) places.delete(character);
  }
  return places;
}

/** The longest run within the ranges; of several, the earliest in `a`, then the earliest in `b`. */
function longestRun(
  a: readonly string[],
  b: readonly string[],
  places: ReadonlyMap<string, readonly number[]>,
  [fromA, toA, fromB, toB]: readonly [number, number, number, number],
): readonly [number, number, number] {
  let bestA = fromA;
  let bestB = fromB;
  let size = 0;
  let lengths = new Map<number, number>();
  for (let atA = fromA; atA < toA; atA++) {
    const next = new Map<number, number>();
    for (const atB of places.get(a[atA]!) ?? []) {
      if (atB < fromB) continue;
      if (atB >= toB) break;
      const length = (lengths.get(atB - 1) ?? 0) + 1;
      next.set(atB, length);
      if (length > size) {
        bestA = atA - length + 1;
        bestB = atB - length + 1;
        size = length;
      }
    }
    lengths = next;
  }
  // Characters that were dropped from `places` still extend a run.
  while (bestA > fromA && bestB > fromB && a[bestA - 1] === b[bestB - 1]) {
    bestA--;
    bestB--;
    size++;
  }
  while (bestA + size < toA && bestB + size < toB && a[bestA + size] === b[bestB + size]) size++;
  return [bestA, bestB, size];
}

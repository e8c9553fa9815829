/** Byte-pair merges: which neighbouring pieces of words to join, most frequent pair first. */

/** Two neighbouring pieces that become one. */
export type Merge = readonly [left: string, right: string];

interface Word {
  pieces: string[];
  readonly count: number;
}

/** Longer words are addresses, hashes and the like: their pieces say nothing about other words. */
const longestWord = 64;

/** Up to `limit` merges for words with their frequencies. */
export function learnMerges(
  counts: Iterable<readonly [word: string, count: number]>,
  limit: number,
): readonly Merge[] {
  const words: Word[] = [];
  for (const [word, count] of counts) {
    if (word.length <= longestWord) words.push({ pieces: Array.from(word), count });
  }
  const pairs = pairTable();
  for (const word of words) pairs.change(word, 1);

  const ranks = new Map<string, number>();
  const merges: Merge[] = [];
  while (merges.length < limit) {
    const best = pairs.mostFrequent();
    if (best === undefined) break;
    ranks.set(best.key, merges.length);
    merges.push(best.merge);
    for (const word of best.words) {
      pairs.change(word, -1);
      word.pieces = applyMerges(word.pieces, ranks);
      pairs.change(word, 1);
    }
  }
  return merges;
}

/**
 * Applies merges as an encoder does: lowest rank first, leftmost of equals. Joining one pair can
 * create another that was learnt much earlier, so applying only the new merge is not enough.
 */
function applyMerges(start: readonly string[], ranks: ReadonlyMap<string, number>): string[] {
  const pieces = [...start];
  for (;;) {
    let at = -1;
    let lowest = Infinity;
    for (let i = 0; i + 1 < pieces.length; i++) {
      const rank = ranks.get(pairKey(pieces[i] as string, pieces[i + 1] as string));
      if (rank !== undefined && rank < lowest) {
        lowest = rank;
        at = i;
      }
    }
    if (at < 0) return pieces;
    pieces.splice(at, 2, `${pieces[at]}${pieces[at + 1]}`);
  }
}

interface Pair {
  readonly key: string;
  readonly merge: Merge;
  count: number;
  /** Every word that has the pair, and perhaps some that had it before. */
  readonly words: Set<Word>;
}

/** The pairs of neighbours in all words, updated as words change. */
function pairTable() {
  const pairs = new Map<string, Pair>();
  return {
    /** Adds (`sign` 1) or removes (`sign` -1) the pairs of a word. */
    change(word: Word, sign: 1 | -1): void {
      const { pieces } = word;
      for (let i = 0; i + 1 < pieces.length; i++) {
        const merge: Merge = [pieces[i] as string, pieces[i + 1] as string];
        const key = pairKey(...merge);
        const pair = pairs.get(key) ?? { key, merge, count: 0, words: new Set<Word>() };
        pair.count += sign * word.count;
        if (sign === 1) pair.words.add(word);
        if (pair.count === 0) pairs.delete(key);
        else pairs.set(key, pair);
      }
    },
    /** Ties go to the pair that comes first in the order of its characters. */
    mostFrequent(): Pair | undefined {
      let best: Pair | undefined;
      for (const pair of pairs.values()) {
        if (
          best === undefined ||
          pair.count > best.count ||
          (pair.count === best.count && pair.key < best.key)
        ) {
          best = pair;
        }
      }
      return best;
    },
  };
}

/** No piece contains a blank: byte-level spelling uses another character for that byte. */
function pairKey(left: string, right: string): string {
  return `${left} ${right}`;
}

/**
 * BM25 ranking, to the bit as Lucene 9 computes it (k1 = 0.9, b = 0.4: Anserini's and WebShop's settings):
 *
 *   score(d) = Σ_t  w_t − w_t / (1 + tf · c_d),   w_t = count of t in the query · idf_t,
 *   idf_t = ln(1 + (N − df + ½) / (df + ½)),      c_d = 1 / (k1 · ((1 − b) + b · length_d / mean length))
 *
 * with 32-bit floats throughout except for the sum over terms, which is in double precision and rounded
 * at the end. Equal scores rank by ascending id.
 */
import { type Analyser, createAnalyser } from "./analyser.js";
import { createBestHits, type Hit } from "./retriever.js";

const K1 = Math.fround(0.9);
const B = Math.fround(0.4);
/** The smallest 32-bit float: it vanishes next to any other part of a score. */
const SMALLEST = 2 ** -149;
/** Documents are scored this many at a time, so that their sums stay in the processor's cache. */
const BLOCK = 1 << 15;
/** Below this many documents a term's weights are cheaper to compute than to look up. */
const TABLE_FROM = 4096;
/** Term frequencies above this are computed one by one: they are rare. */
const TABLE_FREQUENCIES = 8;

/**
 * The documents and terms of a collection, built by `createIndexBuilder` and stored by `saveIndex`.
 */
export interface Bm25Index {
  /** The documents' ids, in the order they were added. */
  readonly ids: readonly string[];
  /** Rank of each document's id in ascending order, which breaks ties between equal scores. */
  readonly idRank: Uint32Array;
  /** Document lengths, rounded to a byte. */
  readonly lengths: Uint8Array;
  /** Number of documents with at least one term, and the total number of their terms. */
  readonly filledDocuments: number;
  readonly totalTerms: number;
  /** The index of each term. */
  readonly terms: ReadonlyMap<string, number>;
  /** Where the documents of each term start in the two arrays below, followed by their length. */
  readonly starts: Uint32Array;
  /** The documents that contain the term, ascending, and how often each contains it. */
  readonly documents: Uint32Array;
  readonly frequencies: Uint16Array;
}

/** The best documents for a query, and how many contain any of its terms. */
interface Hits {
  readonly hits: readonly Hit[];
  readonly matching: number;
}

/** Searches one index; it reuses its working memory, so use one searcher per thread. */
export interface Searcher {
  readonly index: Bm25Index;
  search(query: string, limit: number): Hits;
}

/** A query term: its position in the document list, and its weight. */
interface QueryTerm {
  /** The next of its documents, and the end of the list. */
  at: number;
  readonly end: number;
  readonly weight: number;
  /** Parts of scores by frequency and length, if there are enough documents to be worth it. */
  readonly table: Float32Array | undefined;
}

/** A searcher for an index. */
export function createSearcher(index: Bm25Index, analyse: Analyser = createAnalyser()): Searcher {
  const { starts, documents, frequencies, lengths, idRank } = index;
  const count = index.ids.length;
  const inverseLength = inverseLengths(index);
  const sums = new Float64Array(Math.min(BLOCK, count));
  const touched = new Uint32Array(sums.length + 1);

  const queryTerm = (number: number, timesInQuery: number): QueryTerm => {
    const at = starts[number]!;
    const end = starts[number + 1]!;
    const weight = Math.fround(timesInQuery * idf(index.filledDocuments, end - at));
    const table = end - at < TABLE_FROM ? undefined : partTable(weight, inverseLength);
    return { at, end, weight, table };
  };

  /**
   * Adds the term's part to its documents from `from` to `to`; returns how many have been touched
   * so far.
   */
  const addTerm = (term: QueryTerm, from: number, to: number, alreadyTouched: number): number => {
    const { end, weight, table } = term;
    let matching = alreadyTouched;
    let at = term.at;
    for (; at < end; at++) {
      const document = documents[at]!;
      if (document >= to) break;
      const frequency = frequencies[at]!;
      const length = lengths[document]!;
      const part =
        table !== undefined && frequency <= TABLE_FREQUENCIES
          ? table[(frequency - 1) * 256 + length]!
          : partialScore(weight, frequency, inverseLength[length]!);
      const sum = sums[document - from]!;
      // Unconditional, to avoid branch mispredictions.
      touched[matching] = document;
      matching += sum === 0 ? 1 : 0;
      sums[document - from] = sum + part;
    }
    term.at = at;
    return matching;
  };

  return {
    index,
    search(query, limit) {
      const terms = Array.from(countTerms(index, analyse(query)), ([number, times]) =>
        queryTerm(number, times),
      );
      const best = createBestHits(Math.min(limit, count), idRank);
      let matching = 0;
      let floor = Number.NEGATIVE_INFINITY;
      for (let from = 0; from < count && terms.length > 0; from += BLOCK) {
        let inBlock = 0;
        for (const term of terms) inBlock = addTerm(term, from, from + BLOCK, inBlock);
        for (let at = 0; at < inBlock; at++) {
          const document = touched[at]!;
          const score = Math.fround(sums[document - from]!);
          if (score >= floor) floor = best.offer(document, score);
          sums[document - from] = 0;
        }
        matching += inBlock;
      }
      return { hits: best.sorted(index.ids), matching };
    },
  };
}

/** How often each indexed term occurs in the query, in the order of first occurrence. */
function countTerms(index: Bm25Index, terms: readonly string[]): ReadonlyMap<number, number> {
  const counts = new Map<number, number>();
  for (const term of terms) {
    const number = index.terms.get(term);
    if (number !== undefined) counts.set(number, (counts.get(number) ?? 0) + 1);
  }
  return counts;
}

function idf(filledDocuments: number, withTerm: number): number {
  return Math.fround(Math.log(1 + (filledDocuments - withTerm + 0.5) / (withTerm + 0.5)));
}

function partialScore(weight: number, frequency: number, inverseLength: number): number {
  const saturation = Math.fround(1 + Math.fround(frequency * inverseLength));
  const part = Math.fround(weight - Math.fround(weight / saturation));
  // A sum of zero means "not seen yet", so even a part that rounds to zero must leave a trace.
  return part === 0 ? SMALLEST : part;
}

function partTable(weight: number, inverseLength: Float32Array): Float32Array {
  const table = new Float32Array(TABLE_FREQUENCIES * 256);
  for (let at = 0; at < table.length; at++)
    table[at] = partialScore(weight, 1 + (at >> 8), inverseLength[at & 255]!);
  return table;
}

/** The factor c of the formula for each of the 256 possible lengths. */
function inverseLengths(index: Bm25Index): Float32Array {
  const mean = Math.fround(index.totalTerms / Math.max(1, index.filledDocuments));
  const factors = new Float32Array(256);
  for (let byte = 0; byte < 256; byte++) {
    const share = Math.fround(Math.fround(B * Math.fround(byteToLength(byte))) / mean);
    factors[byte] = Math.fround(1 / Math.fround(K1 * Math.fround(Math.fround(1 - B) + share)));
  }
  return factors;
}

/**
 * Document lengths are stored in one byte, as Lucene does (`SmallFloat.intToByte4`): exact below 40, above
 * that with four significant binary digits. Lengths below this are stored as they are.
 */
const EXACT = 24;

/** The byte for a length. */
export function lengthToByte(length: number): number {
  if (length < EXACT) return length;
  const rest = length - EXACT;
  const bits = rest === 0 ? 0 : 32 - Math.clz32(rest);
  if (bits < 4) return EXACT + rest;
  const shift = bits - 4;
  return EXACT + (((rest >>> shift) & 0x07) | ((shift + 1) << 3));
}

/** The length that a byte represents: the smallest one stored as this byte. */
export function byteToLength(byte: number): number {
  if (byte < EXACT) return byte;
  const code = byte - EXACT;
  const shift = (code >>> 3) - 1;
  if (shift < 0) return EXACT + code;
  return EXACT + ((code & 0x07) | 0x08) * 2 ** shift;
}

/**
 * BM25 ranking, to the bit as Lucene 9 computes it (k1 = 0.9, b = 0.4: Anserini's and WebShop's settings):
 *
 *   score(d) = Σ_t  w_t − w_t / (1 + tf · c_d),   w_t = count of t in the query · idf_t,
 *   idf_t = ln(1 + (N − df + ½) / (df + ½)),      c_d = 1 / (k1 · ((1 − b) + b · length_d / mean length))
 *
 * with 32-bit floats throughout except for the sum over terms, which is in double precision and rounded
 * at the end. Equal scores rank by ascending id.
 */
import type { Analyser } from "./analyser.js";
import { createAnalyser } from "./analyser.js";
import { createBestHits } from "./best-hits.js";
import { byteToLength } from "./length-byte.js";

const K1 = Math.fround(0.9);
const B = Math.fround(0.4);
/** Below this many documents a term's weights are cheaper to compute than to look up. */
const TABLE_FROM = 4096;
/** Term frequencies above this are computed one by one: they are rare. */
const TABLE_FREQUENCIES = 8;

/** The documents and terms of a collection, made by `createIndexBuilder` and kept by `saveIndex`. */
export interface Bm25Index {
  /** The documents' ids, in the order they were added. */
  readonly ids: readonly string[];
  /** Rank of each document's id in ascending order: what decides between equal scores. */
  readonly idRank: Uint32Array;
  /** Document lengths, rounded to a byte. */
  readonly lengths: Uint8Array;
  /** Number of documents that have a term at all, and the number of all their terms. */
  readonly filledDocuments: number;
  readonly totalTerms: number;
  /** Number of each term. */
  readonly terms: ReadonlyMap<string, number>;
  /** Where the documents of each term start in the two arrays below, and at the end their length. */
  readonly starts: Uint32Array;
  /** The documents that have the term, ascending, and how often each has it. */
  readonly documents: Uint32Array;
  readonly frequencies: Uint16Array;
}

/** One document found. */
export interface Hit {
  /** Number of the document in the order of indexing. */
  readonly document: number;
  readonly id: string;
  readonly score: number;
}

/** The best documents for a query, and how many have any of its terms. */
export interface Hits {
  readonly hits: readonly Hit[];
  readonly matching: number;
}

/** Searches one index; it reuses its working memory, so use one searcher per thread. */
export interface Searcher {
  readonly index: Bm25Index;
  search(query: string, limit: number): Hits;
}

/** A searcher for an index. */
export function createSearcher(index: Bm25Index, analyse: Analyser = createAnalyser()): Searcher {
  const { starts, documents, frequencies, lengths, idRank } = index;
  const inverseLength = inverseLengths(index);
  const sums = new Float64Array(index.ids.length);
  const touched = new Uint32Array(index.ids.length);
  const table = new Float32Array(TABLE_FREQUENCIES * 256);

  const addTerm = (term: number, count: number, alreadyTouched: number): number => {
    const from = starts[term]!;
    const to = starts[term + 1]!;
    const weight = Math.fround(count * idf(index.filledDocuments, to - from));
    const useTable = to - from >= TABLE_FROM;
    if (useTable) fillTable(table, weight, inverseLength);
    let matching = alreadyTouched;
    for (let at = from; at < to; at++) {
      const document = documents[at]!;
      const frequency = frequencies[at]!;
      const length = lengths[document]!;
      const part =
        useTable && frequency <= TABLE_FREQUENCIES
          ? table[(frequency - 1) * 256 + length]!
          : partialScore(weight, frequency, inverseLength[length]!);
      const sum = sums[document]!;
      if (sum === 0) touched[matching++] = document;
      // A sum of zero means "not seen yet", so even a part that was rounded away has to leave a trace.
      sums[document] = sum + (part === 0 ? Number.MIN_VALUE : part);
    }
    return matching;
  };

  return {
    index,
    search(query, limit) {
      let matching = 0;
      for (const [term, count] of countTerms(index, analyse(query))) {
        matching = addTerm(term, count, matching);
      }
      const best = createBestHits(Math.min(limit, matching), idRank);
      for (let at = 0; at < matching; at++) {
        const document = touched[at]!;
        best.offer(document, Math.fround(sums[document]!));
        sums[document] = 0;
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
  return Math.fround(weight - Math.fround(weight / saturation));
}

function fillTable(table: Float32Array, weight: number, inverseLength: Float32Array): void {
  for (let frequency = 1; frequency <= TABLE_FREQUENCIES; frequency++) {
    for (let length = 0; length < 256; length++) {
      table[(frequency - 1) * 256 + length] = partialScore(
        weight,
        frequency,
        inverseLength[length]!,
      );
    }
  }
}

/** The factor c of the formula for each of the 256 lengths there are. */
function inverseLengths(index: Bm25Index): Float32Array {
  const mean = Math.fround(index.totalTerms / Math.max(1, index.filledDocuments));
  const factors = new Float32Array(256);
  for (let byte = 0; byte < 256; byte++) {
    const share = Math.fround(Math.fround(B * Math.fround(byteToLength(byte))) / mean);
    factors[byte] = Math.fround(1 / Math.fround(K1 * Math.fround(Math.fround(1 - B) + share)));
  }
  return factors;
}

/**
 * Builds an index document by document.
 *
 * Pairs of term and frequency are stored in chunks in document order; at the end a counting sort
 * turns them into lists of documents per term. So memory holds each pair at most twice, and a
 * million documents need no temporary files.
 */
import { type Analyser, createAnalyser } from "./analyser.js";
import type { Bm25Index } from "./bm25.js";
import { lengthToByte } from "./bm25.js";

const CHUNK = 1 << 20;
const MOST_FREQUENT = 0xffff;

/** An index that is being built. */
export interface IndexBuilder {
  /** Adds a document; ids must be distinct. */
  add(id: string, text: string): void;
  /** The finished index; the builder is empty afterwards. */
  finish(): Bm25Index;
}

interface Chunk {
  readonly terms: Uint32Array;
  readonly frequencies: Uint16Array;
}

/** A builder without documents. */
export function createIndexBuilder(analyse: Analyser = createAnalyser()): IndexBuilder {
  const ids: string[] = [];
  const terms = new Map<string, number>();
  /** The number of documents that contain each term. */
  const spread: number[] = [];
  const chunks: Chunk[] = [];
  let used = CHUNK;
  const pairsPerDocument: number[] = [];
  const lengths: number[] = [];
  let totalTerms = 0;
  const counts = new Map<number, number>();

  const push = (term: number, frequency: number): void => {
    if (used === CHUNK) {
      chunks.push({ terms: new Uint32Array(CHUNK), frequencies: new Uint16Array(CHUNK) });
      used = 0;
    }
    const chunk = chunks[chunks.length - 1]!;
    chunk.terms[used] = term;
    chunk.frequencies[used++] = Math.min(frequency, MOST_FREQUENT);
  };

  return {
    add(id, text) {
      const found = analyse(text);
      counts.clear();
      for (const term of found) {
        let number = terms.get(term);
        if (number === undefined) {
          number = terms.size;
          terms.set(term, number);
          spread.push(0);
        }
        counts.set(number, (counts.get(number) ?? 0) + 1);
      }
      for (const [term, frequency] of counts) {
        push(term, frequency);
        spread[term]!++;
      }
      ids.push(id);
      pairsPerDocument.push(counts.size);
      lengths.push(lengthToByte(found.length));
      totalTerms += found.length;
    },
    finish() {
      const starts = new Uint32Array(terms.size + 1);
      for (let term = 0; term < terms.size; term++)
        starts[term + 1] = starts[term]! + spread[term]!;
      const pairs = starts[terms.size]!;
      const documents = new Uint32Array(pairs);
      const frequencies = new Uint16Array(pairs);
      const next = starts.slice(0, terms.size);
      let document = 0;
      let left = pairsPerDocument[0] ?? 0;
      for (let pair = 0; pair < pairs; pair++) {
        while (left === 0) left = pairsPerDocument[++document]!;
        left--;
        const at = pair % CHUNK;
        const chunk = chunks[0]!;
        const place = next[chunk.terms[at]!]!++;
        documents[place] = document;
        frequencies[place] = chunk.frequencies[at]!;
        if (at === CHUNK - 1) chunks.shift();
      }
      return {
        ids,
        idRank: rankIds(ids),
        lengths: Uint8Array.from(lengths),
        filledDocuments: pairsPerDocument.reduce((filled, size) => filled + (size > 0 ? 1 : 0), 0),
        totalTerms,
        terms,
        starts,
        documents,
        frequencies,
      };
    },
  };
}

/** The rank of every id among all of them, ascending by UTF-16 units. */
function rankIds(ids: readonly string[]): Uint32Array {
  const order = new Uint32Array(ids.length).map((_, at) => at);
  order.sort((a, b) => {
    const left = ids[a]!;
    const right = ids[b]!;
    return left < right ? -1 : left > right ? 1 : 0;
  });
  const rank = new Uint32Array(ids.length);
  for (let at = 0; at < order.length; at++) {
    if (at > 0 && ids[order[at]!] === ids[order[at - 1]!])
      throw new Error(
        `Two documents have the id ${JSON.stringify(ids[order[at]!])}: ids must be distinct, because they decide between equal scores.`,
      );
    rank[order[at]!] = at;
  }
  return rank;
}

/**
 * Retrievers: the passages that fit a query best.
 *
 * They all have the same interface. A `local` one answers synchronously, so that an environment
 * around it can be synchronous; the others return a promise. Each of them gives the same answer to
 * the same query, and none fails because of a query's content.
 */
import type { Passage } from "./corpus.js";

/** A passage that was found, and how well it fits. */
export interface PassageHit {
  readonly passage: Passage;
  readonly score: number;
}

/** A retriever in this process. */
export interface LocalRetriever {
  readonly local: true;
  readonly name: string;
  /** How many passages there are. */
  readonly count: number;
  /** The best passages, at most `limit`, best first. */
  search(query: string, limit: number): readonly PassageHit[];
}

/** A retriever that waits for a model or a server. */
export interface WaitingRetriever {
  readonly local: false;
  readonly name: string;
  /** As with a local one; a server that cannot be reached is a `UserError`. */
  search(query: string, limit: number, signal?: AbortSignal): Promise<readonly PassageHit[]>;
}

/** A retriever of either kind. */
export type Retriever = LocalRetriever | WaitingRetriever;

/** The best documents of a search, in a heap whose root is the worst of them. */

/** One document found. */
export interface Hit {
  /** Index of the document in indexing order. */
  readonly document: number;
  readonly id: string;
  readonly score: number;
}

/** Collects the best documents offered. */
interface BestHits {
  /** Adds the document if it is good enough, and returns the current minimum score. */
  offer(document: number, score: number): number;
  /** The kept documents, best first. */
  sorted(ids: readonly string[]): readonly Hit[];
}

/** Keeps the `limit` best documents: higher scores first, then lower ranks of the id. */
export function createBestHits(limit: number, idRank: Uint32Array): BestHits {
  const documents = new Uint32Array(limit);
  const scores = new Float32Array(limit);
  let size = 0;

  /** Whether the entry at `at` ranks below the document. */
  const isWorse = (at: number, document: number, score: number): boolean => {
    const own = scores[at]!;
    if (own !== score) return own < score;
    return idRank[documents[at]!]! > idRank[document]!;
  };
  const put = (at: number, document: number, score: number): void => {
    documents[at] = document;
    scores[at] = score;
  };
  const rise = (from: number, document: number, score: number): void => {
    let at = from;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (isWorse(parent, document, score)) break;
      put(at, documents[parent]!, scores[parent]!);
      at = parent;
    }
    put(at, document, score);
  };
  const replaceWorst = (document: number, score: number): void => {
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= size) break;
      const right = child + 1;
      if (right < size && isWorse(right, documents[child]!, scores[child]!)) child = right;
      if (!isWorse(child, document, score)) break;
      put(at, documents[child]!, scores[child]!);
      at = child;
    }
    put(at, document, score);
  };

  return {
    offer(document, score) {
      if (size < limit) rise(size++, document, score);
      else if (limit > 0 && isWorse(0, document, score)) replaceWorst(document, score);
      if (limit === 0) return Number.POSITIVE_INFINITY;
      return size < limit ? Number.NEGATIVE_INFINITY : scores[0]!;
    },
    sorted(ids) {
      const order = Array.from({ length: size }, (_, at) => at);
      order.sort((a, b) => (isWorse(a, documents[b]!, scores[b]!) ? 1 : -1));
      return order.map((at) => {
        const document = documents[at]!;
        return { document, id: ids[document]!, score: scores[at]! };
      });
    },
  };
}

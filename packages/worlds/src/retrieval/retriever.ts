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

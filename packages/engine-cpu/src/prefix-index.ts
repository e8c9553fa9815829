/**
 * The prefix cache: the KV caches of one replica's rows that a later prompt may continue, by handle,
 * and the index of which replica holds that of which tokens.
 */
import type { KvCache, KvRow } from "./kv-cache.js";

/** Maximum number of rows in the index; the oldest is evicted first. */
const MAX_ROWS = 4096;
/**
 * Rows are looked up by their first tokens; prefilling a shorter one again is faster than looking
 * it up.
 */
const SIGNATURE = 16;

/** Tokens, and where their keys and values are: which replica, and which handle. */
interface CachedPrefix {
  readonly ids: readonly number[];
  readonly replica: number;
  readonly handle: number;
}

/** A cached prefix of a prompt: the first tokens of a row. */
interface PrefixMatch extends Omit<CachedPrefix, "ids"> {
  readonly tokens: number;
}

/** Finds cached rows by their tokens. */
export interface PrefixIndex {
  insert(row: CachedPrefix): void;
  /**
   * For each prompt, the longest cached prefix, which is removed from the index.
   *
   * A prompt that continues a whole row gets that row first; the other prompts get what is left.
   * Text that is decoded and encoded again can have different tokens at its end, so a prompt may
   * diverge from its row some tokens before the row ends.
   */
  match(prompts: readonly (ArrayLike<number> | undefined)[]): readonly (PrefixMatch | undefined)[];
  /** The longest cached prefix of a prompt, which stays in the index. */
  find(prompt: ArrayLike<number>): PrefixMatch | undefined;
  /** Evicts everything, because the weights have changed. */
  clear(): void;
}

/** An empty index. */
export function createPrefixIndex(): PrefixIndex {
  const rows = new Map<string, CachedPrefix[]>();
  let count = 0;
  const drop = (signature: string, row: CachedPrefix): void => {
    const left = rows.get(signature)!.filter((other) => other !== row);
    if (left.length === 0) rows.delete(signature);
    else rows.set(signature, left);
    count -= 1;
  };
  const longest = (
    prompt: ArrayLike<number>,
    least: (row: CachedPrefix) => number,
  ): { readonly row: CachedPrefix; readonly shared: number } | undefined => {
    let best: { readonly row: CachedPrefix; readonly shared: number } | undefined;
    for (const row of rows.get(signatureOf(prompt)) ?? []) {
      const shared = commonPrefix(prompt, row.ids);
      if (shared >= least(row) && shared > (best?.shared ?? 0)) best = { row, shared };
    }
    return best;
  };
  const half = (prompt: ArrayLike<number>) => () => prompt.length / 2;
  return {
    find(prompt) {
      const best = longest(prompt, half(prompt));
      const { replica, handle } = best?.row ?? {};
      return best && { replica: replica!, handle: handle!, tokens: best.shared };
    },
    insert(row) {
      if (row.ids.length < SIGNATURE) return;
      const signature = signatureOf(row.ids);
      rows.set(signature, [...(rows.get(signature) ?? []), row]);
      count += 1;
      while (count > MAX_ROWS) {
        const [oldest, [first]] = rows.entries().next().value!;
        drop(oldest, first!);
      }
    },
    match(prompts) {
      const matches = new Array<PrefixMatch | undefined>(prompts.length).fill(undefined);
      const take = (index: number, least: (row: CachedPrefix) => number) => {
        const prompt = prompts[index];
        if (prompt === undefined || matches[index] !== undefined) return;
        const best = longest(prompt, least);
        if (best === undefined) return;
        const { replica, handle } = best.row;
        drop(signatureOf(prompt), best.row);
        matches[index] = { replica, handle, tokens: best.shared };
      };
      for (const index of prompts.keys()) take(index, ({ ids }) => ids.length);
      for (const index of prompts.keys()) if (prompts[index]) take(index, half(prompts[index]));
      return matches;
    },
    clear() {
      rows.clear();
      count = 0;
    },
  };
}

function signatureOf(ids: ArrayLike<number>): string {
  return Array.from({ length: SIGNATURE }, (_, i) => ids[i]).join();
}

/**
 * How many tokens a row shares with the beginning of a prompt; at least one prompt token is left
 * over.
 */
function commonPrefix(prompt: ArrayLike<number>, ids: readonly number[]): number {
  const most = Math.min(ids.length, prompt.length - 1);
  let count = 0;
  while (count < most && prompt[count] === ids[count]) count += 1;
  return count;
}

/** Keeps a KV cache as long as one of its rows is wanted and there is space. */
export interface PrefixCache {
  put(handle: number, row: KvRow): void;
  /** Removes and returns the row; undefined if it was evicted. */
  take(handle: number): KvRow | undefined;
  /** The row, which stays; undefined if it was evicted. */
  peek(handle: number): KvRow | undefined;
  /** The rows of a KV cache that are still wanted, by handle. */
  rowsOf(kv: KvCache): ReadonlyMap<number, KvRow>;
  /** Evicts all rows of a KV cache. */
  evict(kv: KvCache): void;
  clear(): void;
}

/** An empty prefix cache of at most this many bytes; the oldest KV cache is evicted first. */
export function createPrefixCache(maxBytes: number): PrefixCache {
  const caches = new Map<KvCache, Map<number, KvRow>>();
  const kvOf = new Map<number, KvCache>();
  let bytes = 0;
  const evict = (kv: KvCache) => {
    const rows = caches.get(kv);
    if (rows === undefined) return;
    for (const handle of rows.keys()) kvOf.delete(handle);
    caches.delete(kv);
    bytes -= sizeOf(kv);
  };
  return {
    put(handle, row) {
      const rows = caches.get(row.kv);
      if (rows === undefined) {
        caches.set(row.kv, new Map([[handle, row]]));
        bytes += sizeOf(row.kv);
      } else rows.set(handle, row);
      kvOf.set(handle, row.kv);
      while (bytes > maxBytes) evict(caches.keys().next().value!);
    },
    peek(handle) {
      const kv = kvOf.get(handle);
      return kv && caches.get(kv)!.get(handle);
    },
    take(handle) {
      const kv = kvOf.get(handle);
      if (kv === undefined) return undefined;
      const rows = caches.get(kv)!;
      const row = rows.get(handle);
      rows.delete(handle);
      kvOf.delete(handle);
      if (rows.size === 0) evict(kv);
      return row;
    },
    rowsOf: (kv) => caches.get(kv) ?? new Map(),
    evict,
    clear() {
      caches.clear();
      kvOf.clear();
      bytes = 0;
    },
  };
}

/** The memory it holds, including what it may grow into: allocators touch all of it. */
function sizeOf({ keys, values }: KvCache): number {
  const buffers = new Set([...keys, ...values].map(({ buffer }) => buffer));
  return [...buffers].reduce((sum, { byteLength }) => sum + byteLength, 0);
}

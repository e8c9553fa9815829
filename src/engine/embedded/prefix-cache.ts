/** The prefix cache of one replica: KV caches of rows that a later prompt may continue, by handle. */
import type { KvCache, KvRow } from "./kv-cache.js";

/** Keeps a KV cache as long as one of its rows is wanted and there is space. */
export interface PrefixCache {
  put(handle: number, row: KvRow): void;
  /** Removes and returns the row; undefined if it was evicted. */
  take(handle: number): KvRow | undefined;
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

/** The prefix cache of one replica: KV caches of rows that a later prompt may continue, by handle. */
import type { KvCache, KvRow } from "./kv-cache.js";

/** Keeps KV caches as long as one of their rows is wanted and there is capacity. */
export interface PrefixCache {
  put(handle: number, row: KvRow): void;
  /** The row, which is no longer kept; undefined if it was evicted. */
  take(handle: number): KvRow | undefined;
  /** Evicts all rows of a KV cache. */
  evict(kv: KvCache): void;
  clear(): void;
}

/** An empty prefixes of so many bytes at most; the oldest is evicted first. */
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
      const known = caches.get(row.kv);
      if (known === undefined) {
        caches.set(row.kv, new Map([[handle, row]]));
        bytes += sizeOf(row.kv);
      } else known.set(handle, row);
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
    evict,
    clear() {
      caches.clear();
      kvOf.clear();
      bytes = 0;
    },
  };
}

/** What its rows take; memory to grow into costs nothing until it is used. */
function sizeOf({ keys, values }: KvCache): number {
  return [...keys, ...values].reduce((sum, array) => sum + array.byteLength, 0);
}

import { expect, it } from "vitest";
import type { KvCache } from "./kv-cache.js";
import { createPrefixCache } from "./prefix-index.js";

/** A KV cache of 80 bytes with the given number of rows. */
function kvOf(rows: number): KvCache {
  const half = () => [new Float32Array(10)];
  return { keys: half(), values: half(), capacity: 5, tokens: new Int32Array(rows) };
}

it("returns rows once, and evicts the oldest cache when it is full", () => {
  const prefixes = createPrefixCache(200);
  const [one, two, three] = [kvOf(2), kvOf(1), kvOf(1)];
  prefixes.put(1, { kv: one, row: 0, tokens: 3 });
  prefixes.put(2, { kv: one, row: 1, tokens: 4 });
  prefixes.put(3, { kv: two, row: 0, tokens: 5 });
  expect(prefixes.take(2)).toEqual({ kv: one, row: 1, tokens: 4 });
  expect(prefixes.take(2)).toBeUndefined();
  prefixes.put(4, { kv: three, row: 0, tokens: 1 });
  expect(prefixes.take(1)).toBeUndefined();
  expect([prefixes.take(3)?.kv, prefixes.take(4)?.kv]).toEqual([two, three]);
  // Caches without wanted rows take no space.
  prefixes.put(5, { kv: one, row: 0, tokens: 1 });
  prefixes.put(6, { kv: two, row: 0, tokens: 1 });
  expect(prefixes.take(5)?.kv).toBe(one);
  prefixes.clear();
  expect(prefixes.take(6)).toBeUndefined();
});

it("counts the memory that a cache may grow into", () => {
  const room = () => [new Float32Array(40).subarray(0, 5)];
  const wide = (): KvCache => ({
    ...{ keys: room(), values: room(), capacity: 5, tokens: new Int32Array(1) },
  });
  const prefixes = createPrefixCache(400);
  const [one, two] = [wide(), wide()];
  prefixes.put(1, { kv: one, row: 0, tokens: 3 });
  prefixes.put(2, { kv: two, row: 0, tokens: 3 });
  expect(prefixes.take(1)).toBeUndefined();
  expect(prefixes.take(2)?.kv).toBe(two);
});

import type { ModelConfig } from "@pawl/models/weights/model-config.js";
import { expect, it } from "vitest";
import { type RowGroup, reuseCaches } from "./batching.js";
import type { KvCache } from "./kv-cache.js";
import { createPrefixCache } from "./prefix-index.js";

const config = { layers: 1, kvHeads: 1, headSize: 2 } as ModelConfig;
const TOKENS = 3;
const CAPACITY = 40;

/** Caches of so many rows each, and requests that continue all of them. */
function asked(sizes: readonly number[], continued: true | "apart") {
  const prefixes = createPrefixCache(Number.POSITIVE_INFINITY);
  const groups = sizes.flatMap((rows): readonly RowGroup[] => {
    const half = () => [new Float32Array(rows * CAPACITY * config.headSize)];
    const tokens = new Int32Array(rows).fill(TOKENS);
    const kv: KvCache = { keys: half(), values: half(), capacity: CAPACITY, tokens };
    return Array.from({ length: rows }, (_, row) => {
      const request = { prompt: [1, 2, 3, 4], maxTokens: 8, continued, temperature: 1, seed: row };
      return {
        task: { request, first: 0, count: 1 },
        rows: [{} as RowGroup["rows"][number]],
        prefix: { kv, row, tokens: TOKENS },
      };
    });
  });
  const { batches, rest } = reuseCaches(config, groups, prefixes);
  return { batches: batches.map((batch) => batch.groups.length), rest: rest.length };
}

it("brings rows that are asked together by chance into one cache, if theirs have few of them", () => {
  expect(asked([1, 2, 9, 1], "apart")).toEqual({ batches: [9], rest: 4 });
  expect(asked([6, 7], "apart")).toEqual({ batches: [6, 7], rest: 0 });
});

it("lets rows stay where they are that always continue together", () => {
  expect(asked([1, 2, 9, 1], true)).toEqual({ batches: [1, 2, 9, 1], rest: 0 });
});

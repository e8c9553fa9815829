/**
 * Keys and values of a batch being decoded: those of each prompt, shared by its rows, and each row's own.
 *
 * Keys are stored with positions last, [headSize, positions], so that a score row is a plain product.
 */
import type { ModelConfig } from "../weights/model-config.js";
import { cacheNames, layersOf } from "./generation.js";
import { MASKED } from "./layers.js";
import { type Feeds, floats } from "./sessions.js";

/** The rows of a grid to keep: which group, and which of its rows. */
export interface KeptGroup {
  readonly g: number;
  readonly rows: readonly number[];
}

export interface KeyValueCache {
  /** The caches and their masks as graph inputs. */
  feeds(): Feeds;
  /** Takes the new token's keys and values out of a decode step's results. */
  append(results: ReadonlyMap<string, Float32Array>): void;
  /** A cache of only the given rows. */
  keep(groups: readonly KeptGroup[]): KeyValueCache;
}

/** Everything the cache holds; arrays by layer. */
interface Content {
  readonly promptKeys: readonly Float32Array[];
  readonly promptValues: readonly Float32Array[];
  readonly promptLength: number;
  /** Length of each group's prompt; what is beyond it is padding. */
  readonly lengths: readonly number[];
  /** Rows in each group. */
  readonly count: number;
  ownKeys: readonly Float32Array[];
  ownValues: readonly Float32Array[];
  capacity: number;
  used: number;
}

const FIRST_CAPACITY = 16;

/** The cache after prefill, before any row has a token of its own. */
export function createKeyValueCache(
  config: ModelConfig,
  prefilled: ReadonlyMap<string, Float32Array>,
  batch: {
    readonly lengths: readonly number[];
    readonly promptLength: number;
    readonly count: number;
  },
): KeyValueCache {
  const layers = layersOf(config);
  const size = batch.lengths.length * config.kvHeads * config.headSize * batch.promptLength;
  // Prefill may have computed some empty rows at the end.
  const trimmed = (name: string) => prefilled.get(name)!.subarray(0, size);
  const empty = () => {
    const own = batch.lengths.length * batch.count * config.kvHeads * config.headSize;
    return layers.map(() => new Float32Array(own * FIRST_CAPACITY));
  };
  return cacheOf(config, {
    ...batch,
    promptKeys: layers.map((i) => trimmed(cacheNames.promptKeys(i))),
    promptValues: layers.map((i) => trimmed(cacheNames.promptValues(i))),
    ownKeys: empty(),
    ownValues: empty(),
    capacity: FIRST_CAPACITY,
    used: 0,
  });
}

function cacheOf(config: ModelConfig, content: Content): KeyValueCache {
  const { kvHeads, headSize } = config;
  const groups = content.lengths.length;
  const rows = groups * content.count;
  const { promptLength } = content;
  const promptMask = new Float32Array(groups * promptLength);
  content.lengths.forEach((length, g) => {
    promptMask.fill(MASKED, g * promptLength + length, (g + 1) * promptLength);
  });
  return {
    feeds: () => {
      const { capacity, used } = content;
      const ownMask = new Float32Array(capacity).fill(MASKED, used);
      const feeds: Feeds = {
        promptMask: floats(promptMask, [groups, 1, 1, promptLength]),
        ownMask: floats(ownMask, [1, 1, 1, capacity]),
      };
      for (const i of layersOf(config)) {
        const { promptKeys, promptValues, ownKeys, ownValues } = cacheNames;
        const shared = [content.promptKeys[i]!, content.promptValues[i]!] as const;
        feeds[promptKeys(i)] = floats(shared[0], [groups, kvHeads, headSize, promptLength]);
        feeds[promptValues(i)] = floats(shared[1], [groups, kvHeads, promptLength, headSize]);
        feeds[ownKeys(i)] = floats(content.ownKeys[i]!, [rows, kvHeads, headSize, capacity]);
        feeds[ownValues(i)] = floats(content.ownValues[i]!, [rows, kvHeads, capacity, headSize]);
      }
      return feeds;
    },
    append: (results) => {
      if (content.used === content.capacity) grow(content, rows * kvHeads, headSize);
      const { capacity, used } = content;
      for (const i of layersOf(config)) {
        const keys = results.get(cacheNames.newKeys(i))!;
        const values = results.get(cacheNames.newValues(i))!;
        const ownKeys = content.ownKeys[i]!;
        for (let k = 0; k < keys.length; k++) ownKeys[k * capacity + used] = keys[k]!;
        moveBlocks(values, content.ownValues[i]!, rows * kvHeads, headSize, capacity, used);
      }
      content.used += 1;
    },
    keep: (kept) => {
      const wholeGroups = kept.map(({ g }) => g);
      const keptRows = kept.flatMap(({ g, rows: inner }) =>
        inner.map((r) => g * content.count + r),
      );
      const pick = (arrays: readonly Float32Array[], indices: readonly number[], total: number) =>
        arrays.map((array) => pickBlocks(array, indices, array.length / total));
      return cacheOf(config, {
        ...content,
        lengths: wholeGroups.map((g) => content.lengths[g]!),
        count: kept[0]!.rows.length,
        promptKeys: pick(content.promptKeys, wholeGroups, groups),
        promptValues: pick(content.promptValues, wholeGroups, groups),
        ownKeys: pick(content.ownKeys, keptRows, rows),
        ownValues: pick(content.ownValues, keptRows, rows),
      });
    },
  };
}

/** Copies `heads` blocks of one token each into place `at` of caches of `capacity` tokens. */
function moveBlocks(
  from: Float32Array,
  into: Float32Array,
  heads: number,
  headSize: number,
  capacity: number,
  at: number,
): void {
  for (let h = 0; h < heads; h++)
    into.set(from.subarray(h * headSize, (h + 1) * headSize), (h * capacity + at) * headSize);
}

function grow(content: Content, heads: number, headSize: number): void {
  const { capacity } = content;
  const larger = capacity * 2;
  const spread = (arrays: readonly Float32Array[], blocks: number, width: number) =>
    arrays.map((array) => {
      const grown = new Float32Array(array.length * 2);
      for (let b = 0; b < blocks; b++)
        grown.set(array.subarray(b * width, (b + 1) * width), b * width * 2);
      return grown;
    });
  content.ownKeys = spread(content.ownKeys, heads * headSize, capacity);
  content.ownValues = spread(content.ownValues, heads, capacity * headSize);
  content.capacity = larger;
}

function pickBlocks(array: Float32Array, indices: readonly number[], width: number): Float32Array {
  const picked = new Float32Array(indices.length * width);
  indices.forEach((index, i) => {
    picked.set(array.subarray(index * width, (index + 1) * width), i * width);
  });
  return picked;
}

/**
 * The KV cache of a batch being decoded: one for each prompt, shared by its rows, and one for each
 * row's own tokens.
 *
 * The rows' own keys and values are stored with positions first, so that a decode step writes them where
 * they stay and no padding is computed.
 */
import { type ModelConfig, windowsOf } from "@pawl/models/weights/model-config.js";
import { appendTokens, type KvCache } from "./kv-cache.js";
import { MASKED } from "./layers.js";
import { cacheNames, layersOf, maskNames } from "./sampling-graphs.js";
import { type Feeds, floats } from "./sessions.js";

/** The rows of a grid to keep: which group, and which of its rows. */
interface KeptGroup {
  readonly g: number;
  readonly rows: readonly number[];
}

export interface DecodeCache {
  /** The caches and their masks as graph inputs. */
  feeds(): Feeds;
  /** Where a decode step writes the new token's keys and values, as results by name. */
  next(): Feeds;
  /** The new token's keys and values have been written. */
  append(): void;
  /**
   * A cache of only the given groups (in order) and rows, of which one may become several; this one must
   * not be used any more.
   */
  compact(groups: readonly KeptGroup[]): DecodeCache;
  /** Appends the own tokens of row r of group g to its prompt in a KV cache, at the given row. */
  writeBack(g: number, r: number, into: KvCache, row: number): void;
}

/** Everything the cache holds; arrays by layer. */
interface Content {
  readonly promptKeys: readonly Float32Array[];
  readonly promptValues: readonly Float32Array[];
  readonly promptLength: number;
  /** Tokens of each group's prompt; everything after them is padding. */
  readonly tokens: ArrayLike<number>;
  /** Rows in each group. */
  readonly count: number;
  readonly ownKeys: readonly Float32Array[];
  readonly ownValues: readonly Float32Array[];
  /** Number of own tokens, which is the same for every row. */
  readonly used: number;
}

const FIRST_CAPACITY = 16;

/**
 * Memory for the prompts of rows that were moved together, reused by every cache: allocating each
 * time costs more than the copy. Only one cache at a time may use it.
 */
export type Scratch = (which: "keys" | "values", layer: number, length: number) => Float32Array;

/** Memory that grows when more of it is needed. */
export function createScratch(): Scratch {
  const held = { keys: [] as Float32Array[], values: [] as Float32Array[] };
  return (which, layer, length) => {
    const arrays = held[which];
    if ((arrays[layer]?.length ?? 0) < length) arrays[layer] = new Float32Array(length);
    return arrays[layer]!.subarray(0, length);
  };
}

/** The cache after prefill, before any of the `count` rows of each prompt has a token of its own. */
export function createDecodeCache(
  config: ModelConfig,
  kv: KvCache,
  count: number,
  scratch: Scratch,
): DecodeCache {
  const rows = kv.tokens.length * count;
  const empty = () => {
    const size = rows * config.kvHeads * config.headSize * FIRST_CAPACITY;
    return layersOf(config).map(() => new Float32Array(size));
  };
  return cacheOf(config, scratch, {
    promptKeys: kv.keys,
    promptValues: kv.values,
    promptLength: kv.capacity,
    // Copied, because rows of the KV cache may be continued after they have stopped here.
    tokens: kv.tokens.slice(),
    count,
    ownKeys: empty(),
    ownValues: empty(),
    used: 0,
  });
}

function cacheOf(config: ModelConfig, scratch: Scratch, content: Content): DecodeCache {
  const { kvHeads, headSize } = config;
  const groups = content.tokens.length;
  const rows = groups * content.count;
  const token = rows * kvHeads * headSize;
  const { promptLength } = content;
  const promptMask = maskBehind(content.tokens, promptLength);
  let { ownKeys, ownValues, used } = content;
  return {
    feeds: () => {
      // Tensors cannot be empty: before the first token, its own place is shown, and masked.
      const shown = Math.max(1, used);
      const ownMask = new Float32Array(shown).fill(MASKED, used);
      const feeds: Feeds = {};
      for (const window of windowsOf(config)) {
        const names = maskNames(window);
        const [prompt, mine] =
          window === undefined
            ? [promptMask, ownMask]
            : [
                hideFirst(promptMask, groups, (g) => content.tokens[g]! + used + 1 - window),
                hideFirst(ownMask, 1, () => used + 1 - window),
              ];
        feeds[names.prompt] = floats(prompt, [groups, 1, 1, promptLength]);
        feeds[names.own] = floats(mine, [1, 1, 1, shown]);
      }
      const shared = (data: Float32Array) =>
        floats(data, [groups, kvHeads, promptLength, headSize]);
      const own = (data: Float32Array) =>
        floats(data.subarray(0, shown * token), [shown, rows, kvHeads, headSize]);
      for (const i of layersOf(config)) {
        feeds[cacheNames.promptKeys(i)] = shared(content.promptKeys[i]!);
        feeds[cacheNames.promptValues(i)] = shared(content.promptValues[i]!);
        feeds[cacheNames.ownKeys(i)] = own(ownKeys[i]!);
        feeds[cacheNames.ownValues(i)] = own(ownValues[i]!);
      }
      return feeds;
    },
    next: () => {
      if ((used + 1) * token > ownKeys[0]!.length) {
        ownKeys = ownKeys.map(twiceAsLarge);
        ownValues = ownValues.map(twiceAsLarge);
      }
      const place = (array: Float32Array) =>
        floats(array.subarray(used * token, (used + 1) * token), [rows, kvHeads, 1, headSize]);
      const feeds: Feeds = {};
      for (const i of layersOf(config)) {
        feeds[cacheNames.newKeys(i)] = place(ownKeys[i]!);
        feeds[cacheNames.newValues(i)] = place(ownValues[i]!);
      }
      return feeds;
    },
    append: () => {
      used += 1;
    },
    compact: (kept) => {
      const keptGroups = kept.map(({ g }) => g);
      const keptRows = kept.flatMap(({ g, rows: inner }) =>
        inner.map((r) => g * content.count + r),
      );
      const prompt = kvHeads * headSize * promptLength;
      const capacity = ownKeys[0]!.length / token;
      const width = kvHeads * headSize;
      const ownRows = Array.from({ length: capacity }, (_, s) =>
        keptRows.map((r) => s * rows + r),
      ).flat();
      // Rows move towards the beginning, so a row may already be in its place.
      const together = (which: "keys" | "values", arrays: readonly Float32Array[]) =>
        keptGroups.length === groups
          ? arrays
          : arrays.map((array, i) =>
              pickBlocks(array, keptGroups, prompt, scratch(which, i, keptGroups.length * prompt)),
            );
      const own = (arrays: readonly Float32Array[]) =>
        arrays.map((array) =>
          pickBlocks(array, ownRows, width, new Float32Array(ownRows.length * width)),
        );
      return cacheOf(config, scratch, {
        promptLength,
        used,
        tokens: keptGroups.map((g) => content.tokens[g]!),
        count: kept[0]!.rows.length,
        promptKeys: together("keys", content.promptKeys),
        promptValues: together("values", content.promptValues),
        ownKeys: own(ownKeys),
        ownValues: own(ownValues),
      });
    },
    writeBack: (g, r, kv, row) => {
      const start = (g * content.count + r) * kvHeads * headSize;
      for (const i of layersOf(config)) {
        const own = { keys: ownKeys[i]!, values: ownValues[i]! };
        appendTokens(config, { kv, row }, i, { ...own, count: used, start, token });
      }
      kv.tokens[row]! += used;
    },
  };
}

/** A mask [rows, length] that lets attention see only the given number of tokens of each row. */
export function maskBehind(tokens: ArrayLike<number>, length: number): Float32Array {
  const mask = new Float32Array(tokens.length * length);
  for (let r = 0; r < tokens.length; r++)
    mask.fill(MASKED, r * length + tokens[r]!, (r + 1) * length);
  return mask;
}

/** A mask [rows, length] that also hides the first tokens of each row, as many as `count` says. */
function hideFirst(mask: Float32Array, rows: number, count: (row: number) => number): Float32Array {
  const length = mask.length / rows;
  const hidden = mask.slice();
  for (let r = 0; r < rows; r++)
    hidden.fill(MASKED, r * length, r * length + Math.min(length, Math.max(0, count(r))));
  return hidden;
}

function twiceAsLarge(array: Float32Array): Float32Array {
  const larger = new Float32Array(array.length * 2);
  larger.set(array);
  return larger;
}

/** Blocks of so many numbers, one after another. */
export function pickBlocks(
  array: Float32Array,
  indices: readonly number[],
  size: number,
  into: Float32Array,
): Float32Array {
  indices.forEach((index, i) => {
    into.set(array.subarray(index * size, (index + 1) * size), i * size);
  });
  return into;
}

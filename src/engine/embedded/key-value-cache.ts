/**
 * Keys and values of a batch being decoded: those of each prompt, shared by its rows, and each row's own.
 *
 * A prompt's keys are stored with positions last, [headSize, positions], so that a score row is a plain
 * product. The rows' own keys and values are stored with positions first, so that a new token is appended
 * by one copy and nothing but what is there is computed.
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
  readonly ownKeys: readonly Float32Array[];
  readonly ownValues: readonly Float32Array[];
  /** Tokens of its own that every row has. */
  readonly used: number;
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
  const width = config.kvHeads * config.headSize;
  const size = batch.lengths.length * width * batch.promptLength;
  // Prefill may have computed some empty rows at the end.
  const trimmed = (name: string) => prefilled.get(name)!.subarray(0, size);
  const own = batch.lengths.length * batch.count * width * FIRST_CAPACITY;
  return cacheOf(config, {
    ...batch,
    promptKeys: layers.map((i) => trimmed(cacheNames.promptKeys(i))),
    promptValues: layers.map((i) => trimmed(cacheNames.promptValues(i))),
    ownKeys: layers.map(() => new Float32Array(own)),
    ownValues: layers.map(() => new Float32Array(own)),
    used: 0,
  });
}

function cacheOf(config: ModelConfig, content: Content): KeyValueCache {
  const { kvHeads, headSize } = config;
  const groups = content.lengths.length;
  const rows = groups * content.count;
  const token = rows * kvHeads * headSize;
  const { promptLength } = content;
  const promptMask = new Float32Array(groups * promptLength);
  content.lengths.forEach((length, g) => {
    promptMask.fill(MASKED, g * promptLength + length, (g + 1) * promptLength);
  });
  let { ownKeys, ownValues, used } = content;
  return {
    feeds: () => {
      // There is no tensor of no tokens: before the first one, an empty one is masked.
      const shown = Math.max(1, used);
      const feeds: Feeds = {
        promptMask: floats(promptMask, [groups, 1, 1, promptLength]),
        ownMask: floats(new Float32Array(shown).fill(MASKED, used), [1, 1, 1, shown]),
      };
      const own = (data: Float32Array) =>
        floats(data.subarray(0, shown * token), [shown, rows, kvHeads, headSize]);
      for (const i of layersOf(config)) {
        const shared = [content.promptKeys[i]!, content.promptValues[i]!] as const;
        feeds[cacheNames.promptKeys(i)] = floats(shared[0], [
          groups,
          kvHeads,
          headSize,
          promptLength,
        ]);
        feeds[cacheNames.promptValues(i)] = floats(shared[1], [
          groups,
          kvHeads,
          promptLength,
          headSize,
        ]);
        feeds[cacheNames.ownKeys(i)] = own(ownKeys[i]!);
        feeds[cacheNames.ownValues(i)] = own(ownValues[i]!);
      }
      return feeds;
    },
    append: (results) => {
      if ((used + 1) * token > ownKeys[0]!.length) {
        ownKeys = ownKeys.map(twiceAsLarge);
        ownValues = ownValues.map(twiceAsLarge);
      }
      for (const i of layersOf(config)) {
        ownKeys[i]!.set(results.get(cacheNames.newKeys(i))!, used * token);
        ownValues[i]!.set(results.get(cacheNames.newValues(i))!, used * token);
      }
      used += 1;
    },
    keep: (kept) => {
      const keptGroups = kept.map(({ g }) => g);
      const keptRows = kept.flatMap(({ g, rows: inner }) =>
        inner.map((r) => g * content.count + r),
      );
      const prompt = kvHeads * headSize * promptLength;
      const capacity = ownKeys[0]!.length / token;
      const width = kvHeads * headSize;
      const ownRows = Array.from({ length: capacity }, (_, s) => keptRows.map((r) => s * rows + r));
      const pick = (arrays: readonly Float32Array[], indices: readonly number[], size: number) =>
        arrays.map((array) => pickBlocks(array, indices, size));
      return cacheOf(config, {
        promptLength,
        used,
        lengths: keptGroups.map((g) => content.lengths[g]!),
        count: kept[0]!.rows.length,
        promptKeys: pick(content.promptKeys, keptGroups, prompt),
        promptValues: pick(content.promptValues, keptGroups, prompt),
        ownKeys: pick(ownKeys, ownRows.flat(), width),
        ownValues: pick(ownValues, ownRows.flat(), width),
      });
    },
  };
}

function twiceAsLarge(array: Float32Array): Float32Array {
  const larger = new Float32Array(array.length * 2);
  larger.set(array);
  return larger;
}

function pickBlocks(array: Float32Array, indices: readonly number[], size: number): Float32Array {
  const picked = new Float32Array(indices.length * size);
  indices.forEach((index, i) => {
    picked.set(array.subarray(index * size, (index + 1) * size), i * size);
  });
  return picked;
}

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
  /** Everything one row has read, as it is now. */
  row(g: number, r: number): RowCache;
}

/** Keys [kvHeads, headSize, room] and values [kvHeads, room, headSize] of one row, by layer. */
export interface RowCache {
  /** How many tokens of it are used: the first ones. */
  readonly tokens: number;
  /** For how many tokens there is room. */
  readonly room: number;
  readonly keys: readonly Float32Array[];
  readonly values: readonly Float32Array[];
}

/** A run of slots that hold tokens; what lies between is padding. */
export interface Slots {
  readonly start: number;
  readonly end: number;
}

/** Everything the cache holds; arrays by layer. */
interface Content {
  readonly promptKeys: readonly Float32Array[];
  readonly promptValues: readonly Float32Array[];
  readonly promptLength: number;
  /** Where each group's prompt lies among the slots; the rest is padding. */
  readonly slots: readonly (readonly Slots[])[];
  /** Rows in each group. */
  readonly count: number;
  readonly ownKeys: readonly Float32Array[];
  readonly ownValues: readonly Float32Array[];
  /** Tokens of its own that every row has. */
  readonly used: number;
}

const FIRST_CAPACITY = 16;

/** Prompts that have been read, with keys and values by layer. */
export interface ReadPrompts {
  readonly keys: readonly Float32Array[];
  readonly values: readonly Float32Array[];
  readonly promptLength: number;
  readonly slots: readonly (readonly Slots[])[];
  /** Rows that share each prompt. */
  readonly count: number;
}

/** The cache after the prompts were read, before any row has a token of its own. */
export function createKeyValueCache(config: ModelConfig, read: ReadPrompts): KeyValueCache {
  const { keys, values, ...batch } = read;
  const rows = batch.slots.length * batch.count;
  const empty = () => {
    const size = rows * config.kvHeads * config.headSize * FIRST_CAPACITY;
    return layersOf(config).map(() => new Float32Array(size));
  };
  return cacheOf(config, {
    ...batch,
    promptKeys: keys,
    promptValues: values,
    ownKeys: empty(),
    ownValues: empty(),
    used: 0,
  });
}

function cacheOf(config: ModelConfig, content: Content): KeyValueCache {
  const { kvHeads, headSize } = config;
  const groups = content.slots.length;
  const rows = groups * content.count;
  const token = rows * kvHeads * headSize;
  const { promptLength } = content;
  const promptMask = maskOutside(content.slots, promptLength);
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
        slots: keptGroups.map((g) => content.slots[g]!),
        count: kept[0]!.rows.length,
        promptKeys: pick(content.promptKeys, keptGroups, prompt),
        promptValues: pick(content.promptValues, keptGroups, prompt),
        ownKeys: pick(ownKeys, ownRows.flat(), width),
        ownValues: pick(ownValues, ownRows.flat(), width),
      });
    },
    row: (g, r) => {
      const at = (g * content.count + r) * kvHeads * headSize;
      const begin = g * kvHeads * headSize * promptLength;
      const slots = content.slots[g]!;
      const tokens = countSlots(slots) + used;
      const keys = layersOf(config).map((i) => {
        const count = kvHeads * headSize;
        const prompt = {
          data: content.promptKeys[i]!,
          begin,
          count,
          length: promptLength,
          width: 1,
        };
        const gathered = gatherSlots(prompt, slots, tokens);
        for (let s = 0; s < used; s++)
          for (let b = 0; b < count; b++)
            gathered[(b + 1) * tokens - used + s] = ownKeys[i]![s * token + at + b]!;
        return gathered;
      });
      const values = layersOf(config).map((i) => {
        const data = content.promptValues[i]!;
        const prompt = { data, begin, count: kvHeads, length: promptLength, width: headSize };
        const gathered = gatherSlots(prompt, slots, tokens);
        for (let s = 0; s < used; s++)
          for (let h = 0; h < kvHeads; h++) {
            const from = s * token + at + h * headSize;
            const into = ((h + 1) * tokens - used + s) * headSize;
            gathered.set(ownValues[i]!.subarray(from, from + headSize), into);
          }
        return gathered;
      });
      return { tokens, room: tokens, keys, values };
    },
  };
}

/** Blocks of slots of equal width, and where they begin. */
interface Blocks {
  readonly data: Float32Array;
  readonly begin: number;
  readonly count: number;
  /** Slots in each block, and numbers in each slot. */
  readonly length: number;
  readonly width: number;
}

/** What some slots of each block hold, one after another, with room behind it up to `tokens`. */
function gatherSlots(blocks: Blocks, slots: readonly Slots[], tokens: number): Float32Array {
  const { data, begin, count, length, width } = blocks;
  const gathered = new Float32Array(count * tokens * width);
  for (let b = 0; b < count; b++) {
    const from = begin + b * length * width;
    let into = b * tokens * width;
    for (const { start, end } of slots) {
      gathered.set(data.subarray(from + start * width, from + end * width), into);
      into += (end - start) * width;
    }
  }
  return gathered;
}

/** How many tokens some slots hold. */
export function countSlots(slots: readonly Slots[]): number {
  return slots.reduce((sum, { start, end }) => sum + end - start, 0);
}

/** A mask [rows, length] that lets attention see only the given slots of each row. */
export function maskOutside(rows: readonly (readonly Slots[])[], length: number): Float32Array {
  const mask = new Float32Array(rows.length * length).fill(MASKED);
  rows.forEach((slots, r) => {
    for (const { start, end } of slots) mask.fill(0, r * length + start, r * length + end);
  });
  return mask;
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

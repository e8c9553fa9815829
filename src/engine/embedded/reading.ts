/** Reading prompts before anything is sampled: whole ones, or only what is new since they were last read. */
import type { SampleRequest } from "../engine.js";
import type { ModelConfig } from "../weights/model-config.js";
import { cacheNames, layersOf } from "./generation.js";
import {
  createKeyValueCache,
  type KeyValueCache,
  maskOutside,
  type RowCache,
} from "./key-value-cache.js";
import { type Compiled, type Feeds, floats, integers } from "./sessions.js";
import { rotaryTables } from "./tables.js";

/** Prompt tokens read at a time: few enough to stay in cache. */
const TOKENS_PER_STEP = 512;

/** The next token's distribution for every row. */
export interface Distribution {
  readonly probabilities: Float32Array;
  readonly logSum: Float32Array;
  readonly plainLogSum: Float32Array;
}

/** Prompts that have been read. */
export interface Reading {
  readonly next: Distribution;
  readonly cache: KeyValueCache;
}

/** What reading needs besides the prompts. */
export interface Reader {
  readonly config: ModelConfig;
  /** The weights, where the compiled graphs take them as inputs. */
  readonly weights: Feeds;
  compile(program: "prefill" | "extend" | "decode"): Promise<Compiled>;
}

/** The distribution among a graph's results. */
export function distributionOf(results: ReadonlyMap<string, Float32Array>): Distribution {
  return {
    probabilities: results.get("probabilities")!,
    logSum: results.get("logSum")!,
    plainLogSum: results.get("plainLogSum")!,
  };
}

/** 1 / temperature; taking the most probable token needs no temperature. */
export function inverseTemperature({ temperature = 1 }: SampleRequest): number {
  return temperature === 0 ? 1 : 1 / temperature;
}

/** Reads whole prompts, each once for the `count` rows that share it. */
export async function readPrompts(
  { config, weights, compile }: Reader,
  requests: readonly SampleRequest[],
  count: number,
): Promise<Reading> {
  const prompts = requests.map((request) => request.prompt);
  const length = Math.max(...prompts.map((prompt) => prompt.length));
  const most = Math.max(1, Math.floor(TOKENS_PER_STEP / length));
  const steps = Math.ceil(prompts.length / most);
  const rows = Math.ceil(prompts.length / steps);
  const ids = new Int32Array(steps * rows * length);
  const positions = ids.map((_, i) => i % length);
  const lastPositions = new Int32Array(steps * rows);
  const lastTokens = new Int32Array(steps * rows);
  const inverse = new Float32Array(steps * rows).fill(1);
  prompts.forEach((prompt, r) => {
    ids.set(Array.from(prompt), r * length);
    lastPositions[r] = prompt.length - 1;
    inverse[r] = inverseTemperature(requests[r]!);
  });
  lastPositions.forEach((at, r) => {
    lastTokens[r] = (r % rows) * length + at;
  });
  const prefill = await compile("prefill");
  const results = await prefill.run({
    ...weights,
    ids: integers(ids, [steps, rows * length]),
    positions: integers(positions, [steps, rows, length]),
    lastTokens: integers(lastTokens, [steps, rows]),
    lastPositions: integers(lastPositions, [steps, rows, 1]),
    inverseTemperature: floats(inverse, [steps * rows, 1]),
    ...rotaryTables(config, length),
  });
  const size = prompts.length * config.kvHeads * config.headSize * length;
  // The last step may have computed some empty rows at its end.
  const trimmed = (name: (index: number) => string) =>
    layersOf(config).map((index) => results.get(name(index))!.subarray(0, size));
  const cache = createKeyValueCache(config, {
    keys: trimmed(cacheNames.promptKeys),
    values: trimmed(cacheNames.promptValues),
    slots: prompts.map((prompt) => [{ start: 0, end: prompt.length }]),
    promptLength: length,
    count,
  });
  return { next: distributionOf(results), cache };
}

/** Reads what is new in prompts whose beginnings are remembered. */
export async function continuePrompts(
  reader: Reader,
  requests: readonly SampleRequest[],
  remembered: readonly RowCache[],
): Promise<Reading> {
  const { config } = reader;
  const { kvHeads, headSize, vocabularySize } = config;
  const rows = requests.length;
  const past = Math.max(...remembered.map(({ tokens }) => tokens));
  const news = requests.map(({ prompt }, r) => prompt.length - remembered[r]!.tokens);
  const length = Math.max(...news);
  const promptLength = past + length;
  const rowSize = kvHeads * headSize * promptLength;
  const allocate = () => layersOf(config).map(() => new Float32Array(rows * rowSize));
  const [keys, values] = [allocate(), allocate()];
  remembered.forEach(({ tokens, ...cache }, r) => {
    const [lines, blocks] = [kvHeads * headSize, kvHeads];
    const begin = r * rowSize;
    for (const index of layersOf(config)) {
      place(cache.keys[index]!, lines, tokens, keys[index]!, promptLength, begin);
      const [wide, used] = [promptLength * headSize, tokens * headSize];
      place(cache.values[index]!, blocks, used, values[index]!, wide, begin);
    }
  });
  const next = {
    probabilities: new Float32Array(rows * vocabularySize),
    logSum: new Float32Array(rows),
    plainLogSum: new Float32Array(rows),
  };
  // A few rows at a time, so that the activations of their new tokens stay in cache.
  const most = Math.max(1, Math.floor(TOKENS_PER_STEP / length));
  for (let from = 0; from < rows; from += most) {
    const to = Math.min(rows, from + most);
    const slice = (arrays: readonly Float32Array[]) =>
      arrays.map((array) => array.subarray(from * rowSize, to * rowSize));
    const batch = { requests: requests.slice(from, to), remembered: remembered.slice(from, to) };
    const results = await extend(reader, batch, { past, length }, slice(keys), slice(values));
    for (const [name, array] of Object.entries(distributionOf(results)))
      next[name as keyof typeof next].set(array, (from * array.length) / (to - from));
    for (const index of layersOf(config)) {
      const added = [cacheNames.newKeys(index), cacheNames.newValues(index)] as const;
      const blocks = (to - from) * kvHeads;
      const lines = blocks * headSize;
      const begin = from * rowSize;
      place(results.get(added[0])!, lines, length, keys[index]!, promptLength, begin + past);
      const [wide, used] = [promptLength * headSize, length * headSize];
      place(results.get(added[1])!, blocks, used, values[index]!, wide, begin + past * headSize);
    }
  }
  const cache = createKeyValueCache(config, {
    keys,
    values,
    slots: remembered.map(({ tokens }, r) => [
      { start: 0, end: tokens },
      { start: past, end: past + news[r]! },
    ]),
    promptLength,
    count: 1,
  });
  return { next, cache };
}

/** Copies the first `used` numbers of equal blocks to `begin` and every `width` numbers after it. */
function place(
  from: Float32Array,
  blocks: number,
  used: number,
  into: Float32Array,
  width: number,
  begin: number,
): void {
  const size = from.length / blocks;
  for (let b = 0; b < blocks; b++)
    into.set(from.subarray(b * size, b * size + used), begin + b * width);
}

/** Computes the new tokens of some rows. */
async function extend(
  { config, weights, compile }: Reader,
  batch: {
    readonly requests: readonly SampleRequest[];
    readonly remembered: readonly RowCache[];
  },
  { past, length }: { readonly past: number; readonly length: number },
  keys: readonly Float32Array[],
  values: readonly Float32Array[],
): Promise<ReadonlyMap<string, Float32Array>> {
  const { kvHeads, headSize } = config;
  const { requests, remembered } = batch;
  const rows = requests.length;
  const promptLength = past + length;
  const ids = new Int32Array(rows * length);
  const positions = new Int32Array(rows * length);
  const lastTokens = new Int32Array(rows);
  requests.forEach(({ prompt }, r) => {
    const known = remembered[r]!.tokens;
    for (let i = 0; i < length; i++) {
      ids[r * length + i] = prompt[known + i] ?? 0;
      // Padding comes after everything, so that causality alone hides it.
      positions[r * length + i] = known + i;
    }
    lastTokens[r] = r * length + prompt.length - known - 1;
  });
  const caches: Feeds = {};
  for (const index of layersOf(config)) {
    const name = [cacheNames.promptKeys(index), cacheNames.promptValues(index)] as const;
    caches[name[0]] = floats(keys[index]!, [rows, kvHeads, 1, headSize, promptLength]);
    caches[name[1]] = floats(values[index]!, [rows, kvHeads, 1, promptLength, headSize]);
  }
  const slots = remembered.map(({ tokens: end }) => [{ start: 0, end }]);
  const program = await compile("extend");
  return program.run({
    ...weights,
    ...caches,
    ids: integers(ids, [rows * length]),
    positions: integers(positions, [rows, length]),
    lastTokens: integers(lastTokens, [rows]),
    promptMask: floats(maskOutside(slots, promptLength), [rows, 1, 1, 1, promptLength]),
    inverseTemperature: floats(Float32Array.from(requests, inverseTemperature), [rows, 1]),
    ...rotaryTables(config, promptLength),
  });
}

/** Reading prompts before anything is sampled: whole ones, or only what is new since they were last read. */
import type { SampleRequest } from "../engine.js";
import type { ModelConfig } from "../weights/model-config.js";
import { cacheNames, layersOf } from "./generation.js";
import { maskBehind } from "./key-value-cache.js";
import { type Compiled, type Feeds, floats, integers } from "./sessions.js";
import { type Slab, writeTokens } from "./slab.js";
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
  readonly slab: Slab;
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

/** Reads whole prompts. */
export async function readPrompts(
  { config, weights, compile }: Reader,
  requests: readonly SampleRequest[],
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
  const slab = {
    keys: trimmed(cacheNames.promptKeys),
    values: trimmed(cacheNames.promptValues),
    room: length,
    tokens: Int32Array.from(prompts, (prompt) => prompt.length),
  };
  return { next: distributionOf(results), slab };
}

/** Reads what is new in the prompts whose beginnings are the rows of a slab, and adds it there. */
export async function continuePrompts(
  reader: Reader,
  requests: readonly SampleRequest[],
  slab: Slab,
): Promise<Reading> {
  const { config } = reader;
  const { kvHeads, headSize, vocabularySize } = config;
  const rows = requests.length;
  const news = requests.map(({ prompt }, r) => prompt.length - slab.tokens[r]!);
  const next = {
    probabilities: new Float32Array(rows * vocabularySize),
    logSum: new Float32Array(rows),
    plainLogSum: new Float32Array(rows),
  };
  // A few rows at a time, so that the activations of their new tokens stay in cache.
  const most = Math.max(1, Math.floor(TOKENS_PER_STEP / Math.max(...news)));
  for (let from = 0; from < rows; from += most) {
    const to = Math.min(rows, from + most);
    const length = Math.max(...news.slice(from, to));
    const results = await extend(reader, requests.slice(from, to), slab, from, length);
    for (const [name, array] of Object.entries(distributionOf(results)))
      next[name as keyof typeof next].set(array, (from * array.length) / (to - from));
    for (const index of layersOf(config)) {
      const keys = results.get(cacheNames.newKeys(index))!;
      const values = results.get(cacheNames.newValues(index))!;
      for (let row = from; row < to; row++) {
        const head = headSize * length;
        const start = (row - from) * kvHeads * head;
        writeTokens(config, { slab, row }, index, {
          keys,
          values,
          count: news[row]!,
          keyAt: { start, head, token: 1, next: length },
          valueAt: { start, head, token: headSize, next: 1 },
        });
      }
    }
  }
  news.forEach((count, row) => {
    slab.tokens[row]! += count;
  });
  return { next, slab };
}

/** Computes the new tokens of some rows of a slab, beginning with row `from`. */
async function extend(
  { config, weights, compile }: Reader,
  requests: readonly SampleRequest[],
  slab: Slab,
  from: number,
  length: number,
): Promise<ReadonlyMap<string, Float32Array>> {
  const { kvHeads, headSize } = config;
  const rows = requests.length;
  const tokens = slab.tokens.subarray(from, from + rows);
  const ids = new Int32Array(rows * length);
  const positions = new Int32Array(rows * length);
  const lastTokens = new Int32Array(rows);
  requests.forEach(({ prompt }, r) => {
    const known = tokens[r]!;
    for (let i = 0; i < length; i++) {
      ids[r * length + i] = prompt[known + i] ?? 0;
      // Padding comes after everything, so that causality alone hides it.
      positions[r * length + i] = known + i;
    }
    lastTokens[r] = r * length + prompt.length - known - 1;
  });
  const size = kvHeads * headSize * slab.room;
  const part = (array: Float32Array) => array.subarray(from * size, (from + rows) * size);
  const caches: Feeds = {};
  for (const index of layersOf(config)) {
    const name = [cacheNames.promptKeys(index), cacheNames.promptValues(index)] as const;
    caches[name[0]] = floats(part(slab.keys[index]!), [rows, kvHeads, 1, headSize, slab.room]);
    caches[name[1]] = floats(part(slab.values[index]!), [rows, kvHeads, 1, slab.room, headSize]);
  }
  const program = await compile("extend");
  return program.run({
    ...weights,
    ...caches,
    ids: integers(ids, [rows * length]),
    positions: integers(positions, [rows, length]),
    lastTokens: integers(lastTokens, [rows]),
    promptMask: floats(maskBehind(tokens, slab.room), [rows, 1, 1, 1, slab.room]),
    inverseTemperature: floats(Float32Array.from(requests, inverseTemperature), [rows, 1]),
    ...rotaryTables(config, length + Math.max(...tokens)),
  });
}

/** Prefill: whole prompts, or only the suffixes after a cached prefix. */
import type { SampleRequest } from "@pawl/core/engine/engine.js";
import type { ModelConfig } from "@pawl/models/weights/model-config.js";
import { maskBehind } from "./decode-cache.js";
import { hasWindow, PAST_POSITIONS } from "./extend-graph.js";
import { appendTokens, type KvCache } from "./kv-cache.js";
import { ALLOWED, cacheNames, layersOf } from "./sampling-graphs.js";
import { type Compiled, type Feed, type Feeds, floats, integers } from "./sessions.js";
import { rotaryTables } from "./tables.js";

/** Prompt tokens prefilled at a time: few enough to stay in cache. */
const TOKENS_PER_CHUNK = 512;

/** The next-token distribution of every row. */
export interface Distribution {
  readonly probabilities: Float32Array;
  readonly logSum: Float32Array;
  readonly plainLogSum: Float32Array;
}

/** Prompts that have been prefilled. */
export interface Prefilled {
  readonly next: Distribution;
  readonly kv: KvCache;
}

/** The sampling graphs, which have the weights to run with. */
export interface CompiledModel {
  readonly config: ModelConfig;
  /** Whether its graphs ask which tokens are allowed. */
  readonly masked: boolean;
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

/** 1 / temperature; greedy decoding needs no temperature. */
export function inverseTemperature({ temperature = 1 }: SampleRequest): number {
  return temperature === 0 ? 1 : 1 / temperature;
}

/** Which tokens may come first after these prompts, for graphs that ask. */
export type FirstTokens = (from: number, to: number) => Feed;

/** Prefills whole prompts. */
export async function prefillPrompts(
  { config, compile, masked }: CompiledModel,
  requests: readonly SampleRequest[],
  first: FirstTokens,
): Promise<Prefilled> {
  const prompts = requests.map((request) => request.prompt);
  const length = Math.max(...prompts.map((prompt) => prompt.length));
  const most = Math.max(1, Math.floor(TOKENS_PER_CHUNK / length));
  const chunks = Math.ceil(prompts.length / most);
  const rows = Math.ceil(prompts.length / chunks);
  const ids = new Int32Array(chunks * rows * length);
  const positions = ids.map((_, i) => i % length);
  const lastPositions = new Int32Array(chunks * rows);
  const lastTokens = new Int32Array(chunks * rows);
  const inverse = new Float32Array(chunks * rows).fill(1);
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
    ids: integers(ids, [chunks, rows * length]),
    positions: integers(positions, [chunks, rows, length]),
    lastTokens: integers(lastTokens, [chunks, rows]),
    lastPositions: integers(lastPositions, [chunks, rows, 1]),
    inverseTemperature: floats(inverse, [chunks * rows, 1]),
    ...(masked && { [ALLOWED]: first(0, chunks * rows) }),
    ...rotaryTables(config, length),
  });
  const size = prompts.length * config.kvHeads * config.headSize * length;
  // The last chunk may have computed some empty rows at its end.
  const trimmed = (name: (index: number) => string) =>
    layersOf(config).map((index) => results.get(name(index))!.subarray(0, size));
  const kv = {
    keys: trimmed(cacheNames.promptKeys),
    values: trimmed(cacheNames.promptValues),
    capacity: length,
    tokens: Int32Array.from(prompts, (prompt) => prompt.length),
  };
  return { next: distributionOf(results), kv };
}

/** Prefills the suffixes of prompts whose prefixes are the rows of a KV cache, and appends them there. */
export async function prefillSuffixes(
  model: CompiledModel,
  requests: readonly SampleRequest[],
  kv: KvCache,
  first: FirstTokens,
): Promise<Prefilled> {
  const { config } = model;
  const { kvHeads, headSize, vocabularySize } = config;
  const rows = requests.length;
  const token = kvHeads * headSize;
  const suffixes = requests.map(({ prompt }, r) => prompt.length - kv.tokens[r]!);
  const next = {
    probabilities: new Float32Array(rows * vocabularySize),
    logSum: new Float32Array(rows),
    plainLogSum: new Float32Array(rows),
  };
  // A few rows at a time, so that the activations of their new tokens stay in cache.
  const most = Math.max(1, Math.floor(TOKENS_PER_CHUNK / Math.max(...suffixes)));
  for (let from = 0; from < rows; from += most) {
    const to = Math.min(rows, from + most);
    const results = await runExtend(model, requests.slice(from, to), kv, { from, first });
    for (const [name, array] of Object.entries(distributionOf(results)))
      next[name as keyof typeof next].set(array, (from * array.length) / (to - from));
    for (const index of layersOf(config)) {
      const keys = results.get(cacheNames.newKeys(index))!;
      const values = results.get(cacheNames.newValues(index))!;
      let start = 0;
      for (let row = from; row < to; row++) {
        const count = suffixes[row]!;
        appendTokens(config, { kv, row }, index, { keys, values, count, start, token });
        start += count * token;
      }
    }
  }
  suffixes.forEach((count, row) => {
    kv.tokens[row]! += count;
  });
  return { next, kv };
}

/** Computes the new tokens of some rows of a KV cache, starting at row `from`. */
async function runExtend(
  { config, compile, masked }: CompiledModel,
  requests: readonly SampleRequest[],
  kv: KvCache,
  { from, first }: { readonly from: number; first: FirstTokens },
): Promise<ReadonlyMap<string, Float32Array>> {
  const { kvHeads, headSize } = config;
  const rows = requests.length;
  const cached = kv.tokens.subarray(from, from + rows);
  const counts = requests.map(({ prompt }, r) => prompt.length - cached[r]!);
  const length = Math.max(...counts);
  const total = counts.reduce((sum, count) => sum + count, 0);
  const [ids, positions, tokenSlots] = Array.from({ length: 3 }, () => new Int32Array(total)) as [
    Int32Array,
    Int32Array,
    Int32Array,
  ];
  const slotTokens = new Int32Array(rows * length);
  const slotPositions = new Int32Array(rows * length);
  const lastTokens = new Int32Array(rows);
  let token = 0;
  requests.forEach(({ prompt }, r) => {
    for (let i = 0; i < length; i++) {
      const slot = r * length + i;
      slotPositions[slot] = cached[r]! + i;
      if (i >= counts[r]!) continue;
      ids[token] = prompt[cached[r]! + i]!;
      positions[token] = cached[r]! + i;
      tokenSlots[token] = slot;
      slotTokens[slot] = token;
      token += 1;
    }
    lastTokens[r] = token - 1;
  });
  const lastPositions = Int32Array.from(requests, ({ prompt }) => prompt.length - 1);
  const size = kvHeads * headSize * kv.capacity;
  const part = (array: Float32Array) =>
    floats(array.subarray(from * size, (from + rows) * size), [
      rows,
      kvHeads,
      1,
      kv.capacity,
      headSize,
    ]);
  const caches: Feeds = {};
  for (const index of layersOf(config)) {
    caches[cacheNames.promptKeys(index)] = part(kv.keys[index]!);
    caches[cacheNames.promptValues(index)] = part(kv.values[index]!);
  }
  const program = await compile("extend");
  return program.run({
    ...caches,
    ids: integers(ids, [total]),
    positions: integers(positions, [total, 1]),
    slotTokens: integers(slotTokens, [rows, length]),
    slotPositions: integers(slotPositions, [rows, length]),
    tokenSlots: integers(tokenSlots, [total]),
    lastTokens: integers(lastTokens, [rows]),
    lastPositions: integers(lastPositions, [rows, 1]),
    promptMask: floats(maskBehind(cached, kv.capacity), [rows, 1, 1, 1, kv.capacity]),
    ...(hasWindow(config) && {
      [PAST_POSITIONS]: integers(
        Int32Array.from({ length: kv.capacity }, (_, i) => i),
        [1, kv.capacity],
      ),
    }),
    inverseTemperature: floats(Float32Array.from(requests, inverseTemperature), [rows, 1]),
    ...(masked && { [ALLOWED]: first(from, from + rows) }),
    ...rotaryTables(config, 1 + Math.max(...lastPositions)),
  });
}

/** Sampling in one lane: prompts are prefilled once, then all rows decode in step until the last one stops. */

import { createRandom, mixSeed, type Random } from "../../random.js";
import type { Sample, SampleRequest } from "../engine.js";
import type { ModelConfig } from "../weights/model-config.js";
import { tensorSpecs, VALUE_HEAD } from "../weights/tensor-names.js";
import { chooseToken } from "./choose.js";
import { extendProgram } from "./continuation.js";
import { decodeProgram, prefillProgram } from "./generation.js";
import type { KeyValueCache, RowCache } from "./key-value-cache.js";
import {
  continuePrompts,
  type Distribution,
  distributionOf,
  inverseTemperature,
  type Reader,
  readPrompts,
} from "./reading.js";
import { type Feeds, floats, integers, type Sessions } from "./sessions.js";
import { rotaryTables } from "./tables.js";
import type { WeightSet } from "./weight-set.js";

/** Rows decoded together, and prompt tokens cached together, at most. */
export const MAX_ROWS = 256;
const MAX_PROMPT_TOKENS = 65_536;
/**
 * Models up to this size, in bytes, are compiled with their weights inside whenever these have changed:
 * products with stored weights are up to twice as fast, and a training run samples much between updates.
 */
const MAX_STORED_BYTES = 2 ** 28;
/** Rows are moved together when at most this share of them is still going. */
const COMPACT_BELOW = 0.6;

/** Samples of one prompt to be made together. */
export interface SampleTask {
  readonly request: SampleRequest;
  /** Which of the request's samples: the first one, and how many. */
  readonly first: number;
  readonly count: number;
  /** What the prompt goes on from, where that was kept. */
  readonly remembered?: RowCache | undefined;
  /** Whether to hand out what was read, for a prompt that goes on from there. */
  readonly keep: boolean;
}

/** What came of a task. */
export interface SampledGroup {
  readonly samples: readonly Sample[];
  /** Keys and values of all tokens but the last one, if they were to be kept. */
  readonly cache?: RowCache | undefined;
}

export interface Decoder {
  sample(tasks: readonly SampleTask[], weights: WeightSet): Promise<readonly SampledGroup[]>;
}

/** The buffers of a cache, which may move to another thread with it. */
export function cacheBuffers(cache: RowCache | undefined): readonly ArrayBufferLike[] {
  return cache === undefined ? [] : [...cache.keys, ...cache.values].map((array) => array.buffer);
}

/** A continuation in progress. */
interface Row {
  readonly request: SampleRequest;
  readonly random: Random;
  readonly tokens: number[];
  readonly logprobs: number[];
  readonly sampledLogprobs: number[];
  stopReason: Sample["stopReason"] | undefined;
}

/** The rows of a task. */
interface Group {
  readonly task: SampleTask;
  readonly rows: readonly Row[];
  /** Where what was read is put, if it is to be kept. */
  readonly kept: { cache?: RowCache };
}

/** A decoder that keeps compiled graphs among the sessions; smaller models store their weights there. */
export function createDecoder(
  config: ModelConfig,
  sessions: Sessions,
  maxStoredBytes = MAX_STORED_BYTES,
): Decoder {
  const specs = tensorSpecs(config).filter((spec) => spec.name !== VALUE_HEAD);
  const programs = { prefill: prefillProgram, extend: extendProgram, decode: decodeProgram };
  const reader = ({ arrays, version }: WeightSet): Reader => {
    const bytes = specs.reduce((sum, { name }) => sum + arrays.get(name)!.byteLength, 0);
    if (bytes <= maxStoredBytes)
      return {
        config,
        compile: (name) => sessions.get(name, () => programs[name](config, arrays), { version }),
        weights: {},
      };
    const inputs = specs.map(({ name, shape }) => [name, floats(arrays.get(name)!, shape)]);
    return {
      config,
      compile: (name) => sessions.get(name, () => programs[name](config)),
      weights: Object.fromEntries(inputs),
    };
  };
  return {
    sample: async (tasks, weights) => {
      const groups = tasks.map((task): Group => {
        const rows = Array.from({ length: task.count }, (_, i) => startRow(task, i));
        return { task, rows, kept: {} };
      });
      const compiled = reader(weights);
      const isNew = ({ task }: Group) => task.remembered === undefined;
      const fresh = formBatches(groups.filter(isNew));
      const continued = formBatches(groups.filter((group) => !isNew(group)));
      for (const batch of [...fresh, ...continued]) await sampleBatch(compiled, batch);
      return groups.map(({ rows, kept }) => ({ samples: rows.map(toSample), ...kept }));
    },
  };
}

function startRow({ request, first }: SampleTask, index: number): Row {
  return {
    request,
    random: createRandom(mixSeed(request.seed, first + index)),
    tokens: [],
    logprobs: [],
    sampledLogprobs: [],
    stopReason: undefined,
  };
}

function toSample(row: Row): Sample {
  const { tokens, logprobs, sampledLogprobs } = row;
  return { tokens, logprobs, sampledLogprobs, stopReason: row.stopReason! };
}

/** Batches of prompts of similar length, and of as many samples each, so that little is padded. */
function formBatches(groups: readonly Group[]): readonly (readonly Group[])[] {
  const order = [...groups].sort((a, b) => byLength(a.task, b.task));
  const batches: Group[][] = [];
  for (const group of order) {
    const batch = batches.at(-1);
    const first = batch?.[0];
    const fits =
      batch !== undefined &&
      first !== undefined &&
      first.rows.length === group.rows.length &&
      (batch.length + 1) * group.rows.length <= MAX_ROWS &&
      (batch.length + 1) * first.task.request.prompt.length <= MAX_PROMPT_TOKENS &&
      group.task.request.prompt.length * 2 >= first.task.request.prompt.length;
    if (fits) batch.push(group);
    else batches.push([group]);
  }
  return batches;
}

/** Few samples before many, then long prompts before short ones. */
export function byLength(a: SampleTask, b: SampleTask): number {
  return a.count - b.count || b.request.prompt.length - a.request.prompt.length;
}

async function sampleBatch(reader: Reader, batch: readonly Group[]): Promise<void> {
  const { config, weights } = reader;
  const read = await readBatch(reader, batch);
  let grid: readonly Group[] = batch;
  let { cache } = read;
  const take = (row: Row, next: Distribution, at: number, g: number, r: number) => {
    extend(row, next, at, config.vocabularySize);
    const { task, kept } = grid[g]!;
    if (row.stopReason !== undefined && task.keep) kept.cache = cache.row(g, r);
  };
  grid.forEach((group, g) => {
    group.rows.forEach((row, r) => {
      take(row, read.next, g, g, r);
    });
  });
  const decode = await reader.compile("decode");
  for (;;) {
    const compact = compactGrid(grid, cache);
    if (compact === undefined) return;
    ({ grid, cache } = compact);
    const rows = grid.flatMap((group) => group.rows);
    const results = await decode.run({
      ...weights,
      ...gridFeeds(grid, rows),
      ...cache.feeds(),
      ...rotaryTables(config, 1 + Math.max(...rows.map(position))),
    });
    cache.append(results);
    const next = distributionOf(results);
    const count = grid[0]!.rows.length;
    rows.forEach((row, at) => {
      if (row.stopReason === undefined) take(row, next, at, Math.floor(at / count), at % count);
    });
  }
}

function readBatch(reader: Reader, batch: readonly Group[]) {
  const requests = batch.map(({ task }) => task.request);
  const remembered = batch.flatMap(({ task }) => task.remembered ?? []);
  return remembered.length > 0
    ? continuePrompts(reader, requests, remembered)
    : readPrompts(reader, requests, batch[0]!.rows.length);
}

function gridFeeds(grid: readonly Group[], rows: readonly Row[]): Feeds {
  const count = grid[0]!.rows.length;
  const lastToken = (row: Row) => row.tokens.at(-1)!;
  return {
    ids: integers(Int32Array.from(rows, lastToken), [grid.length, count]),
    positions: integers(Int32Array.from(rows, position), [rows.length, 1]),
    inverseTemperature: floats(
      Float32Array.from(rows, (row) => inverseTemperature(row.request)),
      [rows.length, 1],
    ),
  };
}

/** The position of a row's newest token. */
function position(row: Row): number {
  return row.request.prompt.length + row.tokens.length - 1;
}

/** Draws a row's next token from entry `at` of the distribution. */
function extend(row: Row, next: Distribution, at: number, vocabularySize: number): void {
  const probabilities = next.probabilities.subarray(at * vocabularySize, (at + 1) * vocabularySize);
  const { token, sampledLogprob } = chooseToken(probabilities, row.request, row.random);
  const temperature = 1 / inverseTemperature(row.request);
  const logit = temperature * (Math.log(probabilities[token]!) + next.logSum[at]!);
  row.tokens.push(token);
  row.logprobs.push(logit - next.plainLogSum[at]!);
  row.sampledLogprobs.push(sampledLogprob);
  if (row.request.stop?.some((stop) => endsWith(row.tokens, stop))) row.stopReason = "stop";
  else if (row.tokens.length >= row.request.maxTokens) row.stopReason = "length";
}

function endsWith(tokens: readonly number[], stop: readonly number[]): boolean {
  const begin = tokens.length - stop.length;
  return begin >= 0 && stop.every((token, i) => tokens[begin + i] === token);
}

/**
 * The rows that are still going, moved together when that makes the grid enough smaller; undefined when
 * none is left. Groups keep equal numbers of rows, so a finished row may stay as filling.
 */
function compactGrid(
  grid: readonly Group[],
  cache: KeyValueCache,
): { readonly grid: readonly Group[]; readonly cache: KeyValueCache } | undefined {
  const going = grid.map((group) => group.rows.filter((row) => row.stopReason === undefined));
  const count = Math.max(...going.map((rows) => rows.length));
  if (count === 0) return undefined;
  const kept = going.flatMap((rows, g) => (rows.length === 0 ? [] : [g]));
  const before = grid.length * grid[0]!.rows.length;
  if (kept.length * count > before * COMPACT_BELOW) return { grid, cache };
  const chosen = kept.map((g) => {
    const { rows } = grid[g]!;
    const done = rows.flatMap((row, r) => (row.stopReason === undefined ? [] : [r]));
    const open = rows.flatMap((row, r) => (row.stopReason === undefined ? [r] : []));
    return { g, rows: [...open, ...done].slice(0, count) };
  });
  return {
    grid: chosen.map(({ g, rows }) => ({
      ...grid[g]!,
      rows: rows.map((r) => grid[g]!.rows[r]!),
    })),
    cache: cache.keep(chosen),
  };
}

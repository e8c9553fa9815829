/** Sampling in one lane: prompts are prefilled once, then all rows decode in step until the last one stops. */

import { createRandom, mixSeed, type Random } from "../../random.js";
import type { Sample, SampleRequest } from "../engine.js";
import type { ModelConfig } from "../weights/model-config.js";
import { tensorSpecs, VALUE_HEAD } from "../weights/tensor-names.js";
import { chooseToken } from "./choose.js";
import { extendProgram } from "./continuation.js";
import { decodeProgram, prefillProgram } from "./generation.js";
import {
  createKeyValueCache,
  createScratch,
  type KeyValueCache,
  type Scratch,
} from "./key-value-cache.js";
import {
  continuePrompts,
  type Distribution,
  distributionOf,
  inverseTemperature,
  type Reader,
  type Reading,
  readPrompts,
} from "./reading.js";
import { type Feeds, floats, integers, type Sessions } from "./sessions.js";
import { closeUp, copyRows, type Slab, type SlabRow } from "./slab.js";
import { createSlabStore, type SlabStore } from "./slab-store.js";
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
/** Tokens a row that may go on has room for beside those it is known to need: a few turns. */
const SPARE_ROOM = 64;

/** Samples of one prompt to be made together. */
export interface SampleTask {
  readonly request: SampleRequest;
  /** Which of the request's samples: the first one, and how many. */
  readonly first: number;
  readonly count: number;
  /** What the prompt goes on from, where that was kept in this lane, and how much of it. */
  readonly remembered?: { readonly handle: number; readonly tokens: number } | undefined;
  /** Under which number to keep what is read, for a prompt that goes on from there. */
  readonly keep?: number | undefined;
}

export interface Decoder {
  /** The samples of each task. */
  sample(tasks: readonly SampleTask[], weights: WeightSet): Promise<readonly (readonly Sample[])[]>;
  /** Lets go of what was read with other weights than these. */
  forget(version: number): void;
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
  /** What its prompt goes on from. */
  readonly past: SlabRow | undefined;
}

/** Groups sampled together, in the order of the rows of a slab where their prompts' beginnings lie already. */
interface Batch {
  readonly groups: readonly Group[];
  readonly slab?: Slab | undefined;
}

export interface DecoderOptions {
  /** Bytes of keys and values it keeps at most. */
  readonly maxKeptBytes: number;
  /** Bytes of weights it stores in graphs at most. */
  readonly maxStoredBytes?: number;
}

/** A decoder that keeps compiled graphs among the sessions; smaller models store their weights there. */
export function createDecoder(
  config: ModelConfig,
  sessions: Sessions,
  { maxKeptBytes, maxStoredBytes = MAX_STORED_BYTES }: DecoderOptions,
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
  const store = createSlabStore(maxKeptBytes);
  const scratch = createScratch();
  let version: number | undefined;
  const forget = (current: number) => {
    if (version !== current) store.clear();
    version = current;
  };
  return {
    forget,
    sample: async (tasks, weights) => {
      forget(weights.version);
      const groups = tasks.map((task): Group => {
        const rows = Array.from({ length: task.count }, (_, i) => startRow(task, i));
        const known = task.remembered && store.take(task.remembered.handle);
        return { task, rows, past: known && { ...known, tokens: task.remembered!.tokens } };
      });
      const compiled = reader(weights);
      const { batches, rest } = stayTogether(config, groups, store);
      const isNew = ({ past }: Group) => past === undefined;
      const fresh = formBatches(rest.filter(isNew));
      const continued = formBatches(rest.filter((group) => !isNew(group)));
      for (const batch of [...fresh, ...continued, ...batches])
        for (const [handle, row] of await sampleBatch(compiled, batch, scratch))
          store.put(handle, row);
      return groups.map(({ rows }) => rows.map(toSample));
    },
  };
}

/** Tokens a group's row will have at most. */
function roomNeeded({ task: { request } }: Group): number {
  return request.prompt.length + request.maxTokens;
}

/**
 * Groups that are most of the rows of a slab go on in its memory, and its other rows are let go: rows were put
 * together because they were asked for together, so that what is not asked for with the others has likely ended.
 * The rest is left.
 */
function stayTogether(
  config: ModelConfig,
  groups: readonly Group[],
  store: SlabStore,
): { readonly batches: readonly Batch[]; readonly rest: readonly Group[] } {
  const bySlab = new Map<Slab, Group[]>();
  for (const group of groups)
    if (group.past !== undefined)
      bySlab.set(group.past.slab, [...(bySlab.get(group.past.slab) ?? []), group]);
  const batches = [...bySlab].flatMap(([slab, inside]): readonly Batch[] => {
    const needed = Math.max(...inside.map(roomNeeded));
    const room = needed <= slab.room ? slab.room : needed + SPARE_ROOM;
    if (inside.length * 2 < slab.tokens.length) return [];
    if (inside.length * room > MAX_PROMPT_TOKENS) return [];
    store.drop(slab);
    const groupOf = new Map(inside.map((group) => [group.past!, group]));
    const closed = closeUp(config, slab, [...groupOf.keys()], room);
    return [{ groups: closed.order.map((row) => groupOf.get(row)!), slab: closed.slab }];
  });
  const placed = new Set(batches.flatMap((batch) => batch.groups));
  return { batches, rest: groups.filter((group) => !placed.has(group)) };
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
function formBatches(groups: readonly Group[]): readonly Batch[] {
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
  return batches.map((inside) => ({ groups: inside }));
}

/** Few samples before many, then long prompts before short ones. */
export function byLength(a: SampleTask, b: SampleTask): number {
  return a.count - b.count || b.request.prompt.length - a.request.prompt.length;
}

/** Samples a batch and tells which rows are to be kept, by the numbers to keep them under. */
async function sampleBatch(
  reader: Reader,
  batch: Batch,
  scratch: Scratch,
): Promise<ReadonlyMap<number, SlabRow>> {
  const { config, weights } = reader;
  const { next: first, slab, home } = await readBatch(reader, batch);
  const kept = new Map<number, SlabRow>();
  const rowOf = new Map(batch.groups.map((group, row) => [group.task, row]));
  let grid = batch.groups;
  let cache = createKeyValueCache(config, slab, grid[0]!.rows.length, scratch);
  const take = (row: Row, next: Distribution, at: number, g: number, r: number) => {
    extend(row, next, at, config.vocabularySize);
    const { task } = grid[g]!;
    if (row.stopReason === undefined || task.keep === undefined) return;
    const place = rowOf.get(task)!;
    cache.settle(g, r, home, place);
    kept.set(task.keep, { slab: home, row: place, tokens: home.tokens[place]! });
  };
  grid.forEach((group, g) => {
    group.rows.forEach((row, r) => {
      take(row, first, g, g, r);
    });
  });
  const decode = await reader.compile("decode");
  for (;;) {
    const compact = compactGrid(grid, cache);
    if (compact === undefined) return kept;
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

/** Reads the prompts of a batch; `home` is where rows that are kept have room to go on. */
async function readBatch(
  reader: Reader,
  { groups, slab }: Batch,
): Promise<Reading & { readonly home: Slab }> {
  const { config } = reader;
  const requests = groups.map(({ task }) => task.request);
  const room = Math.max(...groups.map(roomNeeded)) + SPARE_ROOM;
  const past = groups.flatMap((group) => group.past ?? []);
  if (past.length > 0) {
    const home = slab ?? copyRows(config, past, room);
    return { ...(await continuePrompts(reader, requests, home)), home };
  }
  const read = await readPrompts(reader, requests);
  if (groups.every(({ task }) => task.keep === undefined)) return { ...read, home: read.slab };
  const rows = Array.from(read.slab.tokens, (tokens, row) => ({ slab: read.slab, row, tokens }));
  return { ...read, home: copyRows(config, rows, room) };
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

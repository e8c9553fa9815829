/**
 * Sampling in one replica. The life of a batch row:
 *
 * 1. The router (`router.ts`) looks its prompt up in the prefix index and sends it to the replica that
 *    has the longest prefix cached, or to the least loaded one.
 * 2. Prompts of similar length become a batch (`batching.ts`). Rows whose prefixes lie in one KV cache
 *    and are most of its rows stay there together; its other rows are evicted, or moved if they
 *    continue apart.
 * 3. Prefill (`prefill.ts`): whole prompts, or only the suffix after a cached prefix. Their keys and
 *    values form a KV cache (`kv-cache.ts`), which all samples of a prompt share. Branches of a prompt
 *    share it too, and read their short ends in decode steps.
 * 4. Decode: each decode step draws one token for every row. Samples of a prompt that have drawn the
 *    same tokens so far are one path, which is computed once; its own keys and values grow in the
 *    decode cache (`decode-cache.ts`).
 * 5. A row stops at a stop sequence or at its length. When few enough paths are left, the batch is
 *    compacted, so that finished ones are no longer computed.
 * 6. If its request says that a later prompt continues it, its own tokens are written back after its
 *    prompt (unless there are several samples), and the row is kept in the prefix cache (`prefix-index.ts`) until it is continued, until
 *    space is short, or until the weights change.
 */

import { keptMasks, type TokenMasks } from "@pawl/core/constraint/token-masks.js";
import type { Drawn, Sample, SampleRequest } from "@pawl/core/engine/engine.js";
import type { Constraint } from "@pawl/core/text/constraint.js";
import { MAX_STORED_BYTES, MAX_STORED_DECODE_BYTES } from "@pawl/models/model-memory.js";
import type { ModelConfig } from "@pawl/models/weights/model-config.js";
import { tensorSpecs, VALUE_HEAD } from "@pawl/models/weights/tensor-names.js";
import {
  allowedFeed,
  type BatchRow,
  drawToken,
  newestOf,
  positionOf,
  startRow,
  toSample,
} from "./batch-row.js";
import {
  type Batch,
  formBatches,
  givenOf,
  joinBranches,
  type RowGroup,
  reuseCaches,
  type SampleTask,
  SPARE_TOKENS,
  tokensNeeded,
} from "./batching.js";
import {
  createDecodeCache,
  createScratch,
  type DecodeCache,
  pickBlocks,
  type Scratch,
} from "./decode-cache.js";
import { extendProgram } from "./extend-graph.js";
import { copyRows, type KvCache, type KvRow } from "./kv-cache.js";
import type { WeightSet } from "./model-weights.js";
import {
  type CompiledModel,
  type Distribution,
  distributionOf,
  type FirstTokens,
  inverseTemperature,
  prefillPrompts,
  prefillSuffixes,
} from "./prefill.js";
import { createPrefixCache } from "./prefix-index.js";
import { ALLOWED, decodeProgram, prefillProgram } from "./sampling-graphs.js";
import { type Feeds, floats, integers, type Sessions } from "./sessions.js";
import { rotaryTables } from "./tables.js";

/** A batch is compacted when at most this share of its paths is still running. */
const COMPACT_BELOW = 0.6;
export interface Generator {
  /** The samples of each task; `onDrawn` names tasks by their place. */
  sample(
    tasks: readonly SampleTask[],
    weights: WeightSet,
    onDrawn?: (drawn: Drawn) => void,
  ): Promise<readonly (readonly Sample[])[]>;
  /** Evicts what was prefilled with different weights. */
  evictOlder(version: number): void;
}

export interface GeneratorOptions {
  /** Maximum bytes of keys and values in its prefix cache. */
  readonly maxCachedBytes: number;
  /** Maximum bytes of weights it stores in all graphs. */
  readonly maxStoredBytes?: number;
  /** Maximum bytes of weights it stores in the decode graph. */
  readonly maxStoredDecodeBytes?: number;
}

/**
 * A generator that keeps compiled graphs in the sessions; small models store their weights there.
 */
export function createGenerator(
  config: ModelConfig,
  sessions: Sessions,
  {
    maxCachedBytes,
    maxStoredBytes = MAX_STORED_BYTES,
    maxStoredDecodeBytes = MAX_STORED_DECODE_BYTES,
  }: GeneratorOptions,
): Generator {
  const specs = tensorSpecs(config).filter((spec) => spec.name !== VALUE_HEAD);
  const programs = { prefill: prefillProgram, extend: extendProgram, decode: decodeProgram };
  // Once something was held to a constraint, all graphs ask what is allowed: two kinds of them would
  // hold the weights twice.
  let masked = false;
  let masksOf: { readonly key: string; of(constraint: Constraint): TokenMasks } | undefined;
  const masksFor = ({ request: { constraint }, vocabulary }: SampleTask) => {
    if (constraint === undefined || vocabulary === undefined) return undefined;
    if (masksOf?.key !== vocabulary.key)
      masksOf = { key: vocabulary.key, of: keptMasks(vocabulary, config.vocabularySize) };
    return masksOf.of(constraint);
  };
  const compiledWith = ({ name: whose, arrays, version }: WeightSet): CompiledModel => {
    const bytes = specs.reduce((sum, { name }) => sum + arrays.get(name)!.byteLength, 0);
    return {
      config,
      masked,
      compile: async (name) => {
        if (bytes <= (name === "decode" ? maxStoredDecodeBytes : maxStoredBytes))
          return sessions.get(`${whose} ${name}`, () => programs[name](config, masked, arrays), {
            version: 2 * version + (masked ? 1 : 0),
          });
        const inputs = specs.map((spec) => [spec.name, floats(arrays.get(spec.name)!, spec.shape)]);
        const weights: Feeds = Object.fromEntries(inputs);
        const key = masked ? `masked ${name}` : name;
        const { run } = await sessions.get(key, () => programs[name](config, masked));
        return { run: (feeds, into) => run({ ...weights, ...feeds }, into) };
      },
    };
  };
  const prefixes = createPrefixCache(maxCachedBytes);
  const scratch = createScratch();
  let version: number | undefined;
  const evictOlder = (current: number) => {
    if (version !== current) prefixes.clear();
    version = current;
  };
  return {
    evictOlder,
    sample: async (tasks, weights, onDrawn) => {
      evictOlder(weights.version);
      const groups = tasks.map((task): RowGroup => {
        const masks = masksFor(task);
        if (masks !== undefined) masked = true;
        const find = task.isBranch ? prefixes.peek : prefixes.take;
        const row = task.prefix && find(task.prefix.handle);
        const given = givenOf(task, row);
        const rows = Array.from({ length: task.count }, (_, i) =>
          startRow(task.request, task.first + i, masks, given),
        );
        return { task, rows, prefix: row && { ...row, tokens: task.prefix!.tokens } };
      });
      const compiled = compiledWith(weights);
      const { batches, rest } = reuseCaches(config, groups, prefixes);
      const places = new Map(
        groups.flatMap(({ task, rows }, place) => (task.count === 1 ? [[rows[0]!, place]] : [])),
      );
      const isNew = ({ prefix }: RowGroup) => prefix === undefined;
      const fresh = formBatches(rest.filter(isNew));
      const isJoined = ({ rows: [first] }: RowGroup) => first!.given.length > 0;
      const branches = formBatches(joinBranches(rest.filter(isJoined)));
      const continued = formBatches(rest.filter((group) => !isNew(group) && !isJoined(group)));
      for (const batch of [...fresh, ...continued, ...branches, ...batches])
        for (const [handle, row] of await sampleBatch(
          compiled,
          batch,
          scratch,
          onDrawn && { places, onDrawn },
        ))
          prefixes.put(handle, row);
      return groups.map(({ rows }) => rows.map(toSample));
    },
  };
}

/** Who is told of tokens as they are drawn. */
interface Listening {
  /** The places of the tasks with one sample, by their rows. */
  readonly places: ReadonlyMap<BatchRow, number>;
  onDrawn(drawn: Drawn): void;
}

/** Samples a batch and returns which rows to keep, by handle. */
async function sampleBatch(
  model: CompiledModel,
  batch: Batch,
  scratch: Scratch,
  listening: Listening | undefined,
): Promise<ReadonlyMap<number, KvRow>> {
  const { config } = model;
  const { next: first, kv, home } = await prefillBatch(model, batch);
  const kept = new Map<number, KvRow>();
  const rowOf = new Map(batch.groups.map((group, row) => [group.task, row]));
  let grid: Grid = batch.groups.map(({ task, rows }) => ({ task, paths: [rows] }));
  let drawn: number[] = [];
  let cache = createDecodeCache(config, kv, 1, scratch);
  const take = (row: BatchRow, next: Distribution, at: number, g: number) => {
    drawToken(row, next, at, config.vocabularySize);
    const { task } = grid[g]!;
    const told = listening?.places.get(row);
    if (told !== undefined) drawn.push(told, row.tokens.at(-1)!);
    if (row.stopReason === undefined || task.cacheAs === undefined) return;
    const place = rowOf.get(task)!;
    // Of several samples none is continued, only their prompt.
    if (task.count === 1) cache.writeBack(g, 0, home, place);
    kept.set(task.cacheAs, { kv: home, row: place, tokens: home.tokens[place]! });
  };
  const takeAll = (next: Distribution | undefined): void => {
    const count = grid[0]!.paths.length;
    grid.forEach(({ paths }, g) => {
      paths.forEach((path, p) => {
        for (const row of path.filter(isRunning))
          if (row.taken < row.given.length) row.taken += 1;
          else take(row, next!, g * count + p, g);
      });
    });
    listening?.onDrawn(drawn);
    drawn = [];
  };
  takeAll(first);
  const decode = await model.compile("decode");
  for (;;) {
    const left = regroup(grid, cache);
    if (left === undefined) return kept;
    ({ grid, cache } = left);
    const leads = grid.flatMap(({ paths }) => paths.map((path) => path.find(isRunning)));
    const results = await decode.run(
      {
        ...gridFeeds(leads, grid.length),
        ...(model.masked && { [ALLOWED]: allowedFeed(leads, config.vocabularySize) }),
        ...cache.feeds(),
        ...rotaryTables(config, 1 + Math.max(...leads.map(placeOf))),
      },
      cache.next(),
    );
    cache.append();
    takeAll(distributionOf(results));
  }
}

/**
 * Prefills the prompts of a batch; `home` is the KV cache with capacity for rows that will be
 * continued.
 */
async function prefillBatch(
  model: CompiledModel,
  { groups, kv }: Batch,
): Promise<{
  /** Undefined if the rows have tokens of their prompts left to read. */
  readonly next: Distribution | undefined;
  readonly kv: KvCache;
  readonly home: KvCache;
}> {
  const { config } = model;
  const requests = groups.map(({ task }) => task.request);
  const firstOf =
    (rows: readonly (BatchRow | undefined)[]): FirstTokens =>
    (from, to) =>
      allowedFeed(
        Array.from({ length: to - from }, (_, i) => rows[from + i]),
        config.vocabularySize,
      );
  const leads = groups.map(({ rows }) => rows[0]!);
  const capacity = Math.max(...groups.map(tokensNeeded)) + SPARE_TOKENS;
  const prefixes = groups.flatMap((group) => group.prefix ?? []);
  if (leads[0]!.given.length > 0) {
    const shared = copyRows(config, prefixes, Math.max(...prefixes.map(({ tokens }) => tokens)));
    return { next: undefined, kv: shared, home: shared };
  }
  if (prefixes.length > 0) {
    const home = kv ?? copyRows(config, prefixes, capacity);
    return { ...(await prefillSuffixes(model, requests, home, firstOf(leads))), home };
  }
  // Episodes of a group begin with the same prompt, which is read once.
  const { distinct, places } = distinctRequests(requests);
  const first = firstOf(distinct.map((at) => leads[at]!));
  const read = await prefillPrompts(
    model,
    distinct.map((at) => requests[at]!),
    first,
  );
  const isKept = groups.some(({ task }) => task.cacheAs !== undefined);
  if (distinct.length === groups.length && !isKept) return { ...read, home: read.kv };
  const rows = places.map((row) => ({ kv: read.kv, row, tokens: read.kv.tokens[row]! }));
  const home = copyRows(config, rows, isKept ? capacity : read.kv.capacity);
  const each =
    distinct.length === groups.length
      ? read
      : { next: pickRows(read.next, places, config.vocabularySize), kv: home };
  return { ...each, home };
}

/** The first requests of each prompt and temperature, and which of these each request is like. */
function distinctRequests(requests: readonly SampleRequest[]) {
  const placeOf = new Map<string, number>();
  const distinct: number[] = [];
  const places = requests.map(({ prompt, temperature, constraint }, at) => {
    const key = constraint === undefined ? `${temperature} ${prompt}` : `held ${at}`;
    const place = placeOf.get(key) ?? distinct.push(at) - 1;
    placeOf.set(key, place);
    return place;
  });
  return { distinct, places };
}

/** Distributions of some rows, of which one may become several. */
function pickRows(next: Distribution, rows: readonly number[], vocabularySize: number) {
  const picked = (array: Float32Array, size: number) =>
    pickBlocks(array, rows, size, new Float32Array(rows.length * size));
  return {
    probabilities: picked(next.probabilities, vocabularySize),
    logSum: picked(next.logSum, 1),
    plainLogSum: picked(next.plainLogSum, 1),
  };
}

/**
 * What is decoded together: for each task, paths of rows that have drawn the same tokens so far, which
 * are computed once. Tasks have equal numbers of paths, so some are finished, or empty.
 */
type Grid = readonly {
  readonly task: SampleTask;
  readonly paths: readonly (readonly BatchRow[])[];
}[];

const isRunning = (row: BatchRow): boolean => row.stopReason === undefined;

/** The position of a path's newest token; anywhere, if none of its rows is running. */
const placeOf = (lead: BatchRow | undefined): number => (lead === undefined ? 0 : positionOf(lead));

function gridFeeds(leads: readonly (BatchRow | undefined)[], groups: number): Feeds {
  const rows = leads.length;
  return {
    ids: integers(
      Int32Array.from(leads, (lead) => (lead ? newestOf(lead) : 0)),
      [groups, rows / groups],
    ),
    positions: integers(Int32Array.from(leads, placeOf), [rows, 1]),
    inverseTemperature: floats(
      Float32Array.from(leads, (lead) => (lead ? inverseTemperature(lead.request) : 1)),
      [rows, 1],
    ),
  };
}

/**
 * The grid after a draw: paths whose rows drew different tokens are divided, and finished ones are left
 * out if that shrinks the grid enough. Undefined if nothing is running.
 */
function regroup(
  grid: Grid,
  cache: DecodeCache,
): { readonly grid: Grid; readonly cache: DecodeCache } | undefined {
  const divided = grid.map(({ paths }) => paths.flatMap(divide));
  const count = Math.max(...divided.map((parts) => parts.length));
  if (count === 0) return undefined;
  const going = divided.flatMap((parts, g) => (parts.length === 0 ? [] : [g]));
  const isSmall = going.length * count <= grid.length * grid[0]!.paths.length * COMPACT_BELOW;
  const isSame = divided.every(
    (parts) => new Set(parts.map(({ from }) => from)).size === parts.length,
  );
  if (isSame && !isSmall) return { grid, cache };
  const chosen = isSmall ? going : [...grid.keys()];
  const filled = chosen.map((g) => [
    ...divided[g]!,
    ...Array.from({ length: count - divided[g]!.length }, () => ({ from: 0, rows: [] })),
  ]);
  return {
    grid: chosen.map((g, i) => ({
      task: grid[g]!.task,
      paths: filled[i]!.map(({ rows }) => rows),
    })),
    cache: cache.compact(chosen.map((g, i) => ({ g, rows: filled[i]!.map(({ from }) => from) }))),
  };
}

/** The running rows of a path, by the token that they drew last. */
function divide(
  path: readonly BatchRow[],
  from: number,
): readonly { readonly from: number; readonly rows: readonly BatchRow[] }[] {
  const parts = new Map<number, BatchRow[]>();
  for (const row of path.filter(isRunning)) {
    const token = newestOf(row);
    parts.set(token, [...(parts.get(token) ?? []), row]);
  }
  return [...parts.values()].map((rows) => ({ from, rows }));
}

/**
 * Sampling in one replica. The life of a batch row:
 *
 * 1. The router (`router.ts`) looks its prompt up in the prefix index and sends it to the replica that
 *    has the longest prefix cached, or to the least loaded one.
 * 2. Prompts of similar length become a batch (`batching.ts`). Rows whose prefixes lie in one KV cache
 *    and are most of its rows stay there together; its other rows are evicted, or moved if they
 *    continue apart.
 * 3. Prefill (`prefill.ts`): whole prompts, or only the suffix after a cached prefix. Their keys and
 *    values form a KV cache (`kv-cache.ts`), which all samples of a prompt share.
 * 4. Decode: each decode step draws one token for every row. A row's own keys and values grow in the
 *    decode cache (`decode-cache.ts`).
 * 5. A row stops at a stop sequence or at its length. When few enough rows are left, the batch is
 *    compacted, so that finished rows are no longer computed.
 * 6. If its request says that a later prompt continues it, its own tokens are written back after its
 *    prompt (unless there are several samples), and the row is kept in the prefix cache (`prefix-index.ts`) until it is continued, until
 *    space is short, or until the weights change.
 */

import { keptMasks, type TokenMasks } from "@pawl/core/constraint/token-masks.js";
import type { Drawn, Sample } from "@pawl/core/engine/engine.js";
import type { Constraint } from "@pawl/core/text/constraint.js";
import { MAX_STORED_BYTES, MAX_STORED_DECODE_BYTES } from "@pawl/models/model-memory.js";
import type { ModelConfig } from "@pawl/models/weights/model-config.js";
import { tensorSpecs, VALUE_HEAD } from "@pawl/models/weights/tensor-names.js";
import {
  allowedFeed,
  type BatchRow,
  drawToken,
  positionOf,
  startRow,
  toSample,
} from "./batch-row.js";
import {
  type Batch,
  formBatches,
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
  type Prefilled,
  prefillPrompts,
  prefillSuffixes,
} from "./prefill.js";
import { createPrefixCache } from "./prefix-index.js";
import { ALLOWED, decodeProgram, prefillProgram } from "./sampling-graphs.js";
import { type Feeds, floats, integers, type Sessions } from "./sessions.js";
import { rotaryTables } from "./tables.js";

/** A batch is compacted when at most this share of its rows is still running. */
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
        const rows = Array.from({ length: task.count }, (_, i) =>
          startRow(task.request, task.first + i, masks),
        );
        const find = task.isBranch ? prefixes.peek : prefixes.take;
        const row = task.prefix && find(task.prefix.handle);
        return { task, rows, prefix: row && { ...row, tokens: task.prefix!.tokens } };
      });
      const compiled = compiledWith(weights);
      const { batches, rest } = reuseCaches(config, groups, prefixes);
      const places = new Map(tasks.map((task, place) => [task, place]));
      const isNew = ({ prefix }: RowGroup) => prefix === undefined;
      const fresh = formBatches(rest.filter(isNew));
      const continued = formBatches(rest.filter((group) => !isNew(group)));
      for (const batch of [...fresh, ...continued, ...batches])
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
  readonly places: ReadonlyMap<SampleTask, number>;
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
  let grid = batch.groups;
  let drawn: number[] = [];
  const tell = (): void => {
    listening?.onDrawn(drawn);
    drawn = [];
  };
  let cache = createDecodeCache(config, kv, grid[0]!.rows.length, scratch);
  const take = (row: BatchRow, next: Distribution, at: number, g: number, r: number) => {
    drawToken(row, next, at, config.vocabularySize);
    const { task } = grid[g]!;
    if (listening !== undefined && task.count === 1)
      drawn.push(listening.places.get(task)!, row.tokens.at(-1)!);
    if (row.stopReason === undefined || task.cacheAs === undefined) return;
    const place = rowOf.get(task)!;
    // Of several samples none is continued, only their prompt.
    if (task.count === 1) cache.writeBack(g, r, home, place);
    kept.set(task.cacheAs, { kv: home, row: place, tokens: home.tokens[place]! });
  };
  grid.forEach((group, g) => {
    group.rows.forEach((row, r) => {
      take(row, first, g, g, r);
    });
  });
  tell();
  const decode = await model.compile("decode");
  for (;;) {
    const left = compactBatch(grid, cache);
    if (left === undefined) return kept;
    ({ grid, cache } = left);
    const rows = grid.flatMap((group) => group.rows);
    const results = await decode.run({
      ...gridFeeds(grid, rows),
      ...(model.masked && { [ALLOWED]: allowedFeed(rows, config.vocabularySize) }),
      ...cache.feeds(),
      ...rotaryTables(config, 1 + Math.max(...rows.map(positionOf))),
    });
    cache.append(results);
    const next = distributionOf(results);
    const count = grid[0]!.rows.length;
    rows.forEach((row, at) => {
      if (row.stopReason === undefined) take(row, next, at, Math.floor(at / count), at % count);
    });
    tell();
  }
}

/**
 * Prefills the prompts of a batch; `home` is the KV cache with capacity for rows that will be
 * continued.
 */
async function prefillBatch(
  model: CompiledModel,
  { groups, kv }: Batch,
): Promise<Prefilled & { readonly home: KvCache }> {
  const { config } = model;
  const requests = groups.map(({ task }) => task.request);
  const first: FirstTokens = (from, to) =>
    allowedFeed(
      Array.from({ length: to - from }, (_, i) => groups[from + i]?.rows[0]),
      config.vocabularySize,
    );
  const capacity = Math.max(...groups.map(tokensNeeded)) + SPARE_TOKENS;
  const prefixes = groups.flatMap((group) => group.prefix ?? []);
  if (prefixes.length > 0) {
    const home = kv ?? copyRows(config, prefixes, capacity);
    return { ...(await prefillSuffixes(model, requests, home, first)), home };
  }
  const read = await prefillPrompts(model, requests, first);
  if (groups.every(({ task }) => task.cacheAs === undefined)) return { ...read, home: read.kv };
  const rows = Array.from(read.kv.tokens, (tokens, row) => ({ kv: read.kv, row, tokens }));
  return { ...read, home: copyRows(config, rows, capacity) };
}

function gridFeeds(grid: readonly RowGroup[], rows: readonly BatchRow[]): Feeds {
  const count = grid[0]!.rows.length;
  const lastToken = (row: BatchRow) => row.tokens.at(-1)!;
  return {
    ids: integers(Int32Array.from(rows, lastToken), [grid.length, count]),
    positions: integers(Int32Array.from(rows, positionOf), [rows.length, 1]),
    inverseTemperature: floats(
      Float32Array.from(rows, (row) => inverseTemperature(row.request)),
      [rows.length, 1],
    ),
  };
}

/**
 * The rows that are still running, compacted if that shrinks the grid enough; undefined if none is
 * left. Groups keep equal numbers of rows, so a finished row may stay as padding.
 */
function compactBatch(
  grid: readonly RowGroup[],
  cache: DecodeCache,
): { readonly grid: readonly RowGroup[]; readonly cache: DecodeCache } | undefined {
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
    cache: cache.compact(chosen),
  };
}

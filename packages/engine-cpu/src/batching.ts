/** Which samples a replica draws together: batches, and the KV caches they can continue in. */
import type { Vocabulary } from "@pawl/core/constraint/vocabulary.js";
import type { SampleRequest } from "@pawl/core/engine/engine.js";
import type { ModelConfig } from "@pawl/models/weights/model-config.js";
import type { BatchRow } from "./batch-row.js";
import { compactRows, copyRows, type KvCache, type KvRow } from "./kv-cache.js";
import type { PrefixCache } from "./prefix-index.js";

/** Maximum number of rows decoded together, and of prompt tokens cached together. */
export const MAX_ROWS = 256;
const MAX_PROMPT_TOKENS = 65_536;
/** Spare capacity, in tokens, of a row that may be continued: enough for a few turns. */
export const SPARE_TOKENS = 64;

/** Samples of one prompt to be drawn together. */
export interface SampleTask {
  readonly request: SampleRequest;
  /** Which of the request's samples: the first one, and how many. */
  readonly first: number;
  readonly count: number;
  /** The cached prefix of the prompt in this replica: its handle, and how many of its tokens. */
  readonly prefix?: { readonly handle: number; readonly tokens: number } | undefined;
  /** Whether the prefix stays cached, for other prompts that begin with it. */
  readonly isBranch?: boolean;
  /** Handle under which to cache the row, for a prompt that continues it. */
  readonly cacheAs?: number | undefined;
  /** What the model's tokens stand for, if the request is held to something. */
  readonly vocabulary?: Vocabulary | undefined;
}

/** The rows of a task. */
export interface RowGroup {
  readonly task: SampleTask;
  readonly rows: readonly BatchRow[];
  /** The cached prefix of its prompt. */
  readonly prefix: KvRow | undefined;
}

/**
 * Groups sampled together, in the order of the rows of the KV cache that already holds their
 * prefixes.
 */
export interface Batch {
  readonly groups: readonly RowGroup[];
  readonly kv?: KvCache | undefined;
}

/** Maximum number of tokens that a group's row will have. */
export function tokensNeeded({ task: { request } }: RowGroup): number {
  return request.prompt.length + request.maxTokens;
}

/** A cache of less than this part of the groups has few of them. */
const FEW = 4;

/**
 * Groups that make up most rows of a KV cache continue in its memory, and its other rows are
 * evicted: rows were batched because they were requested together, so a row that is not requested
 * with the others has probably ended. Rows that continue apart are moved instead; and a cache that
 * has few of those that are asked together is left, so that they come into one. The remaining groups
 * are returned.
 */
export function reuseCaches(
  config: ModelConfig,
  groups: readonly RowGroup[],
  prefixes: PrefixCache,
): { readonly batches: readonly Batch[]; readonly rest: readonly RowGroup[] } {
  const byCache = new Map<KvCache, RowGroup[]>();
  for (const group of groups)
    if (group.prefix !== undefined && group.task.isBranch !== true)
      byCache.set(group.prefix.kv, [...(byCache.get(group.prefix.kv) ?? []), group]);
  const batches = [...byCache].flatMap(([kv, inside]): readonly Batch[] => {
    const needed = Math.max(...inside.map(tokensNeeded));
    const capacity = needed <= kv.capacity ? kv.capacity : needed + SPARE_TOKENS;
    const others = inside.some(isApart) ? prefixes.rowsOf(kv) : undefined;
    if (others !== undefined && inside.length * FEW < groups.length) return [];
    const rows = others === undefined ? kv.tokens.length : inside.length + others.size;
    if (inside.length * 2 < rows) return [];
    if (inside.length * capacity > MAX_PROMPT_TOKENS) return [];
    const [{ rows: first }] = inside as [RowGroup];
    if (inside.some((group) => group.rows.length !== first.length)) return [];
    if (inside.length * first.length > MAX_ROWS) return [];
    prefixes.evict(kv);
    if (others !== undefined) moveRows(config, others, prefixes);
    const groupOf = new Map(inside.map((group) => [group.prefix!, group]));
    const compacted = compactRows(config, kv, [...groupOf.keys()], capacity);
    return [{ groups: compacted.order.map((row) => groupOf.get(row)!), kv: compacted.kv }];
  });
  const placed = new Set(batches.flatMap((batch) => batch.groups));
  return { batches, rest: groups.filter((group) => !placed.has(group)) };
}

const isApart = ({ task }: RowGroup): boolean => task.request.continued === "apart";

/** Caches the rows in a KV cache of their own. */
function moveRows(
  config: ModelConfig,
  rows: ReadonlyMap<number, KvRow>,
  prefixes: PrefixCache,
): void {
  if (rows.size === 0) return;
  const capacity = Math.max(...[...rows.values()].map(({ tokens }) => tokens)) + SPARE_TOKENS;
  const kv = copyRows(config, [...rows.values()], capacity);
  [...rows.keys()].forEach((handle, row) => {
    prefixes.put(handle, { kv, row, tokens: kv.tokens[row]! });
  });
}

/** An end of a prompt of at most so many tokens is read beside those of the other branches. */
const SHORT = 16;

/**
 * The end of a branch that is read token by token: branches of a prompt then share its keys and values,
 * and what they begin with.
 */
export function givenOf(task: SampleTask, prefix: KvRow | undefined): readonly number[] {
  if (task.isBranch !== true || prefix === undefined || task.request.constraint) return [];
  const end = Array.from(task.request.prompt).slice(task.prefix!.tokens);
  return end.length <= SHORT ? end : [];
}

/** Branches of one prompt at one temperature, as rows of one group. */
export function joinBranches(groups: readonly RowGroup[]): readonly RowGroup[] {
  const joined = new Map<string, RowGroup>();
  for (const { task, rows, prefix } of groups) {
    const key = `${task.prefix!.handle} ${task.prefix!.tokens} ${task.request.temperature}`;
    const all = [...(joined.get(key)?.rows ?? []), ...rows];
    joined.set(key, { task: { ...task, count: all.length }, rows: all, prefix });
  }
  return [...joined.values()];
}

/**
 * Batches of prompts with similar lengths and sample counts, so that there is little padding.
 */
export function formBatches(groups: readonly RowGroup[]): readonly Batch[] {
  const order = [...groups].sort((a, b) => byLength(a.task, b.task));
  const batches: RowGroup[][] = [];
  for (const group of order) {
    const batch = batches.at(-1);
    const first = batch?.[0];
    const fits =
      batch !== undefined &&
      first !== undefined &&
      group.rows.length <= 2 * first.rows.length &&
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

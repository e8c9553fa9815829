/**
 * Continuous batching: the sample requests of many conversations go to the engine together.
 *
 * A request is sampled in slices of a few tokens. After each slice the finished ones leave, and
 * those that came meanwhile join the next slice, so nobody waits for the longest answer. Slices
 * continue in the engine's prefix cache, so a slice costs hardly more than its decode steps. Where
 * they begin depends on the request alone: the same request gives the same tokens in any company,
 * but for rounding, which differs with the batch.
 */
import { setTimeout as wait } from "node:timers/promises";
import { type Engine, EngineError, type Sample, type SampleRequest } from "../engine/engine.js";
import { mixSeed } from "../random.js";
import type { Sampler } from "./chat.js";

/** Requests sampled together: their KV caches fit in memory. */
const MAX_ROWS = 256;
/** Tokens per slice: few enough that nobody waits long, enough that joining costs little. */
const SLICE_TOKENS = 32;
/**
 * An idle engine waits for the conversations of the last slice to ask again, at most this share of
 * what that slice took: a batch that falls apart costs more.
 */
const PATIENCE = 0.25;
const MIN_PATIENCE_MS = 5;

type SamplerRequest = Parameters<Sampler["sample"]>[0];

/** How requests are put together. */
export interface BatcherOptions {
  /**
   * Tokens per slice; Infinity samples every request in one go, for engines without a prefix cache.
   */
  readonly sliceTokens?: number;
  /** Maximum number of requests sampled together. */
  readonly maxRows?: number;
}

/** A request and what was sampled for it so far. */
interface Row {
  readonly request: SamplerRequest;
  readonly tokens: number[];
  readonly logprobs: number[];
  /** Undefined once a slice came without them. */
  sampledLogprobs: number[] | undefined;
  slices: number;
  settle(end: { readonly sample: Sample } | { readonly error: unknown }): void;
  settled: boolean;
}

/**
 * A queue in front of an engine. An aborted request is rejected at once, and leaves after the slice
 * that is running.
 */
export function createBatcher(
  engine: Pick<Engine, "sample" | "capabilities">,
  { sliceTokens = SLICE_TOKENS, maxRows = MAX_ROWS }: BatcherOptions = {},
): Sampler {
  const waiting: Row[] = [];
  let running = false;
  let last = { rows: maxRows, ms: 0 };
  const work = async () => {
    running = true;
    let rows: Row[] = [];
    while (rows.length + waiting.length > 0) {
      if (rows.length === 0) await untilTogether(waiting, last.rows, PATIENCE * last.ms);
      rows = rows.concat(waiting.splice(0, maxRows - rows.length)).filter((row) => !row.settled);
      const begin = performance.now();
      if (rows.length > 0) await sampleSlice(engine, rows, sliceTokens);
      last = { rows: rows.length, ms: performance.now() - begin };
      rows = rows.filter((row) => !row.settled);
    }
    running = false;
  };
  return {
    sample: (request, signal) =>
      new Promise((resolve, reject) => {
        signal?.throwIfAborted();
        refuseOverflow(request, engine.capabilities.maxContext);
        const leave = () => row.settle({ error: signal!.reason });
        const row: Row = {
          request,
          tokens: [],
          logprobs: [],
          sampledLogprobs: [],
          slices: 0,
          settled: false,
          settle: (end) => {
            if (row.settled) return;
            row.settled = true;
            signal?.removeEventListener("abort", leave);
            if ("sample" in end) resolve(end.sample);
            else reject(end.error);
          },
        };
        signal?.addEventListener("abort", leave, { once: true });
        waiting.push(row);
        if (!running) void work();
      }),
  };
}

/** Refuses what the engine would only notice in a late slice. */
function refuseOverflow({ prompt, maxTokens }: SamplerRequest, maxContext: number): void {
  if (prompt.length + maxTokens > maxContext)
    throw new EngineError(
      `a prompt of ${prompt.length} tokens and ${maxTokens} new ones exceed the model's context of ${maxContext}; shorten the prompt or lower maxTokens`,
    );
}

/** Waits for as many requests as are expected: conversations that advance together ask together. */
async function untilTogether(
  waiting: readonly Row[],
  expected: number,
  patienceMs: number,
): Promise<void> {
  const end = performance.now() + Math.max(MIN_PATIENCE_MS, patienceMs);
  while (waiting.length < expected && performance.now() < end) await wait(1);
}

/** Samples the next slice of every row, and settles those that end. */
async function sampleSlice(
  engine: Pick<Engine, "sample">,
  rows: readonly Row[],
  sliceTokens: number,
): Promise<void> {
  try {
    const samples = await engine.sample(rows.map((row) => sliceOf(row, sliceTokens)));
    rows.forEach((row, i) => {
      take(row, samples[i]![0]!);
    });
  } catch (error) {
    // One bad request fails a whole call: alone, each gets its own answer.
    if (rows.length > 1) for (const row of rows) await sampleSlice(engine, [row], sliceTokens);
    else rows[0]!.settle({ error });
  }
}

function sliceOf({ request, tokens, slices }: Row, sliceTokens: number): SampleRequest {
  const left = request.maxTokens - tokens.length;
  const whole = left <= sliceTokens;
  return {
    ...request,
    ...(tokens.length > 0 && { prompt: [...Array.from(request.prompt), ...tokens] }),
    maxTokens: whole ? left : sliceTokens,
    ...((request.continued || !whole) && { continued: "apart" }),
    seed: slices === 0 ? request.seed : mixSeed(request.seed, "slice", slices),
  };
}

/** Adds a slice to its row, up to a stop sequence that may have begun in an earlier one. */
function take(row: Row, slice: Sample): void {
  const { request, tokens } = row;
  row.slices += 1;
  // An engine that gives no token will not give one later either.
  let stopped = slice.stopReason === "stop" || slice.tokens.length === 0;
  for (const [i, token] of slice.tokens.entries()) {
    tokens.push(token);
    row.logprobs.push(slice.logprobs[i]!);
    if (slice.sampledLogprobs === undefined) row.sampledLogprobs = undefined;
    else row.sampledLogprobs?.push(slice.sampledLogprobs[i]!);
    if (request.stop?.some((stop) => endsWith(tokens, stop)) !== true) continue;
    stopped = true;
    break;
  }
  if (!stopped && tokens.length < request.maxTokens) return;
  const { logprobs, sampledLogprobs } = row;
  row.settle({
    sample: {
      tokens,
      logprobs,
      ...(sampledLogprobs && { sampledLogprobs }),
      stopReason: stopped ? "stop" : "length",
    },
  });
}

function endsWith(tokens: readonly number[], stop: readonly number[]): boolean {
  const begin = tokens.length - stop.length;
  return begin >= 0 && stop.every((token, i) => tokens[begin + i] === token);
}

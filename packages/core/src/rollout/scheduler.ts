/**
 * The scheduler between an engine and everything that samples from it. It decides which requests are
 * sampled together, how many episodes are played at once, and what happens to the last, slow ones.
 *
 * **Requests** wait in one queue, and the engine samples one batch at a time. The pace decides when
 * the next batch starts and which requests are in it:
 *
 *   `together`  Programs of an agent, side by side. The batch starts when every program has a request
 *               in the queue, and keeps the order in which they joined. The same programs therefore
 *               form the same batches, and a run can be repeated bit for bit. A program that is busy,
 *               for example in a slow tool, delays a batch by at most the time the last one took;
 *               then the batch starts without it.
 *   `own`       Episodes that do not wait for each other. The batch starts as soon as the engine is
 *               free, with the oldest requests in the queue, at most `rows`.
 *   `served`    Clients that come and go. As `own`, but long answers are sampled in slices
 *               (`slices.ts`). Between two slices, finished requests leave the batch and waiting ones
 *               join it. Clients of one batch tend to ask again together, so an idle engine waits a
 *               moment for them.
 *
 * An engine that batches by itself gets requests as they arrive, at most `rows` at a time. An answer
 * depends on its request and seed, not on the rest of the batch, except for rounding.
 *
 * **Episodes at once.** `together`: all episodes of a rollout, in lock-step, so that a policy samples
 * for all of them in one call (`rollout.ts`). `own`: as many as fill the engine's next batch, since
 * the requests of any more would only queue.
 *
 * **The last, slow episodes.** `together`: the rollout waits for them. `own`: once nine tenths of a
 * rollout's episodes are over, the others have `stragglerSeconds` left. After that they are broken, or
 * their groups are carried over: complete groups are learnt, and the others continue in the next
 * rollout and are learnt with it. Nothing is sampled for them between two rollouts. A group is carried
 * over only once; episodes that are still unfinished then are broken.
 */
import type { ActingEngine, Drawn, Sample, SampleRequest } from "../engine/engine.js";
import type { Admission } from "./rollout.js";
import { addSlice, apart, type Draft, draftOf, nextSlice, refuseOverflow } from "./slices.js";

/** Tokens per slice: few enough that nobody waits long, enough that joining costs little. */
const SLICE_TOKENS = 32;
/** Served requests sampled together: their KV caches fit in memory. */
const SERVED_ROWS = 256;
/** The shortest wait for programs that are still busy. */
const MIN_TOGETHER_MS = 250;
/** How long an idle engine waits for its last clients, as a share of their batch's time. */
const SERVED_PATIENCE = 0.25;
const MIN_SERVED_MS = 5;

/** How requests are put together. */
export interface SchedulerOptions {
  readonly pace: "together" | "own" | "served";
  /** Most requests sampled at once (default: 256 served ones, and otherwise any number). */
  readonly rows?: number;
  /**
   * Tokens per slice of a served answer (default: 32); Infinity samples every answer in one go, for
   * engines without a prefix cache.
   */
  readonly sliceTokens?: number;
  /**
   * At their own pace: whether the engine batches requests by itself (default: whether another
   * program samples for it).
   */
  readonly batchesItself?: boolean;
}

/** Samples one continuation at a time for many callers. */
export interface Sampler {
  /** An aborted request is rejected at once. `hear` is told of its tokens, as soon as can be. */
  sample(
    request: Omit<SampleRequest, "count">,
    signal?: AbortSignal,
    hear?: (tokens: readonly number[]) => void,
  ): Promise<Sample>;
}

/** One program's place: with pace `together`, the others wait for its requests. */
interface Place extends Sampler {
  /** Gives the place up: the others no longer wait for this program. */
  leave(): void;
}

/** What the engine did since `load` was last called. */
export interface Load {
  /** Seconds in which it sampled. */
  readonly busySeconds: number;
  readonly calls: number;
  readonly rows: number;
  /** Most episodes that were in progress at once. */
  readonly live: number;
}

/** A queue in front of an engine. */
export interface Scheduler extends Sampler {
  /** The same queue as an engine, for policies that sample several requests at once. */
  readonly engine: ActingEngine;
  /** Takes a place; programs that run together take theirs before any of them asks. */
  join(): Place;
  /** Where episodes wait until they may start. */
  readonly admission: Admission;
  /** Holds back new batches until `open`; a running call is not interrupted. */
  close(): void;
  open(): void;
  load(): Load;
}

/** A request in the queue, or in the batch that is being sampled. */
interface Row {
  readonly draft: Draft;
  /** The number of its place; 0 has none. */
  readonly place: number;
  readonly hear: ((tokens: readonly number[]) => void) | undefined;
  /** Tokens of the slice under way that it was told of. */
  told: number;
  settle(end: { readonly samples: readonly Sample[] } | { readonly error: unknown }): void;
  isSettled: boolean;
}

/** A scheduler of this engine's requests. */
export function createScheduler(engine: ActingEngine, options: SchedulerOptions): Scheduler {
  const { pace } = options;
  const { rows = pace === "served" ? SERVED_ROWS : Number.POSITIVE_INFINITY } = options;
  const sliceTokens =
    pace === "served" ? (options.sliceTokens ?? SLICE_TOKENS) : Number.POSITIVE_INFINITY;
  const waiting = new Set<Row>();
  const places = new Set<number>();
  const outside: (() => void)[] = [];
  let last = { rows: Number.POSITIVE_INFINITY, ms: 0 };
  let joined = 0;
  let isOpen = true;
  let isSampling = false;
  let turn: NodeJS.Immediate | undefined;
  let timer: NodeJS.Timeout | undefined;
  let inFlight = 0;
  let busySince = 0;
  let limit = rows;
  let live = 0;
  let counts = { busyMs: 0, calls: 0, rows: 0, live: 0 };

  const isReady = (): boolean => {
    if (pace === "own") return true;
    if (pace === "served") return waiting.size >= Math.min(last.rows, rows);
    const asked = new Set([...waiting].map(({ place }) => place));
    return [...places].every((place) => asked.has(place));
  };
  const patienceMs = (): number =>
    pace === "together"
      ? Math.max(MIN_TOGETHER_MS, last.ms)
      : Math.max(MIN_SERVED_MS, SERVED_PATIENCE * last.ms);
  const batchesItself = (): boolean =>
    pace === "own" && (options.batchesItself ?? engine.capabilities.otherSampler === true);

  /** The next requests: by place, then by the time they have waited. */
  const take = (room: number): readonly Row[] => {
    const taken = [...waiting].sort((a, b) => a.place - b.place).slice(0, room);
    for (const row of taken) waiting.delete(row);
    return taken;
  };

  /**
   * Starts a batch if it is time, after a turn of the event loop: answers given together are
   * followed by requests that belong together, and a program may make several calls in parallel.
   */
  const look = (): void => {
    if (turn !== undefined) return;
    turn = setImmediate(() => {
      turn = undefined;
      if (!isOpen || waiting.size === 0) return;
      if (batchesItself())
        for (const row of take(rows - inFlight)) void sampleOnce([row]).then(look);
      else if (isSampling) return;
      else if (isReady()) void sampleBatch();
      else timer ??= setTimeout(() => void sampleBatch(), patienceMs());
    });
  };

  /** Samples slice after slice, until the batch and all that joined it are answered. */
  const sampleBatch = async (): Promise<void> => {
    clearTimeout(timer);
    timer = undefined;
    isSampling = true;
    let batch = take(rows);
    while (batch.length > 0) {
      const started = performance.now();
      await sampleOnce(batch);
      last = { rows: batch.length, ms: performance.now() - started };
      const unfinished = batch.filter(({ isSettled }) => !isSettled);
      batch = unfinished.length === 0 ? [] : [...unfinished, ...take(rows - unfinished.length)];
    }
    isSampling = false;
    look();
  };

  /** Samples a slice for each of these, and answers those that are complete. */
  const sampleOnce = async (batch: readonly Row[]): Promise<void> => {
    if (inFlight === 0) busySince = performance.now();
    inFlight += batch.length;
    counts = { ...counts, calls: counts.calls + 1, rows: counts.rows + batch.length };
    try {
      const slices = batch.map(({ draft }) => nextSlice(draft, sliceTokens));
      // Programs in lock-step continue together; other requests share a batch by chance.
      const samples = await engine.sample(
        pace === "together" ? slices : slices.map(apart),
        undefined,
        batch.some(({ hear }) => hear !== undefined) ? tellerOf(batch) : undefined,
      );
      for (const [at, row] of batch.entries()) {
        // By an engine that does not tell of single tokens.
        if (row.hear !== undefined) tell(row, samples[at]![0]!.tokens.slice(row.told));
        row.told = 0;
        const answer = addSlice(row.draft, samples[at]!, sliceTokens);
        if (answer !== undefined) row.settle({ samples: answer });
      }
    } catch (error) {
      // One client's bad request fails the whole call: sample each alone, for its own answer.
      if (pace === "served" && batch.length > 1) for (const row of batch) await sampleOnce([row]);
      else for (const row of batch) row.settle({ error });
    }
    inFlight -= batch.length;
    if (inFlight === 0) counts.busyMs += performance.now() - busySince;
    // As many episodes as would fill the next batch.
    limit = Math.max(rows, live + rows - inFlight - waiting.size);
    admit();
  };

  const admit = (): void => {
    while (live < limit && outside.length > 0) {
      live += 1;
      counts.live = Math.max(counts.live, live);
      outside.shift()!();
    }
  };

  const ask = (
    request: SampleRequest,
    place: number,
    signal?: AbortSignal,
    hear?: Row["hear"],
  ): Promise<readonly Sample[]> =>
    new Promise((resolve, reject) => {
      signal?.throwIfAborted();
      refuseOverflow(request, engine.capabilities.maxContext);
      const abort = (): void => row.settle({ error: signal!.reason });
      const row: Row = {
        ...{ draft: draftOf(request), place, hear, told: 0, isSettled: false },
        settle(end) {
          if (row.isSettled) return;
          row.isSettled = true;
          signal?.removeEventListener("abort", abort);
          if (waiting.delete(row)) look();
          if ("samples" in end) resolve(end.samples);
          else reject(end.error);
        },
      };
      signal?.addEventListener("abort", abort, { once: true });
      waiting.add(row);
      look();
    });
  const samplerAt = (place: number): Sampler => ({
    sample: async (request, signal, hear) => (await ask(request, place, signal, hear))[0]!,
  });

  return {
    ...samplerAt(0),
    engine: {
      get capabilities() {
        return engine.capabilities;
      },
      sample: (requests) => Promise.all(requests.map((request) => ask(request, 0))),
    },
    join() {
      const place = ++joined;
      places.add(place);
      return {
        ...samplerAt(place),
        leave() {
          places.delete(place);
          look();
        },
      };
    },
    admission: {
      enter: () =>
        new Promise((resolve) => {
          outside.push(resolve);
          admit();
        }),
      leave() {
        live -= 1;
        admit();
      },
    },
    open() {
      isOpen = true;
      look();
    },
    close() {
      isOpen = false;
    },
    load() {
      const { busyMs, ...rest } = counts;
      counts = { busyMs: 0, calls: 0, rows: 0, live };
      return { busySeconds: busyMs / 1000, ...rest };
    },
  };
}

/** Tells the rows of a batch of their tokens; a slice that is sampled again is not told twice. */
function tellerOf(batch: readonly Row[]): (drawn: Drawn) => void {
  const counts = batch.map(() => 0);
  return (drawn) => {
    for (let at = 0; at < drawn.length; at += 2) {
      const row = batch[drawn[at]!]!;
      counts[drawn[at]!]! += 1;
      if (counts[drawn[at]!]! > row.told) tell(row, [drawn[at + 1]!]);
    }
  };
}

function tell(row: Row, tokens: readonly number[]): void {
  row.told += tokens.length;
  if (tokens.length > 0 && !row.isSettled) row.hear?.(tokens);
}

/**
 * The gate between episodes at their own pace and the engine: it is asked for one episode at a
 * time, and whoever waits when the engine is free is sampled together. So nobody waits for the
 * slowest world, and what an episode gets depends on its own seeds only, not on who is sampled with
 * it (but for rounding, which differs with the batch).
 *
 * It also decides how many episodes are played at the same time: as many as make the engine's next
 * batch full. More worlds would only wait in its queue.
 *
 * A server that batches requests by itself gets them as they come.
 */
import { setImmediate } from "node:timers/promises";
import type { ActingEngine, Sample, SampleRequest } from "../engine/engine.js";
import type { Admission } from "./rollout.js";

/** What the engine did since the gate was last asked. */
export interface Load {
  /** Seconds in which it sampled. */
  readonly busySeconds: number;
  readonly calls: number;
  readonly rows: number;
  /** Most episodes that were in progress at once. */
  readonly live: number;
}

/** An engine that many episodes ask, each on its own. */
export interface Gate {
  readonly engine: ActingEngine;
  readonly admission: Admission;
  open(): void;
  /** Whoever asks from now on waits until it is opened again; a running call is not interrupted. */
  close(): void;
  /** What happened since the last time, or since the beginning. */
  load(): Load;
}

type Samples = readonly (readonly Sample[])[];

interface Call {
  readonly requests: readonly SampleRequest[];
  resolve(samples: Samples): void;
  reject(error: unknown): void;
}

/** A gate before an engine, which samples this many requests at a time. */
export function createGate(engine: ActingEngine, rows: number): Gate {
  const waiting: Call[] = [];
  const outside: (() => void)[] = [];
  let isOpen = true;
  let isPumping = false;
  let inFlight = 0;
  let limit = rows;
  let live = 0;
  let since = 0;
  let seen = { busyMs: 0, calls: 0, rows: 0, live: 0 };

  const letIn = (): void => {
    while (live < limit && outside.length > 0) {
      live += 1;
      seen.live = Math.max(seen.live, live);
      outside.shift()!();
    }
  };
  const size = (calls: readonly Call[]): number =>
    calls.reduce((sum, { requests }) => sum + requests.length, 0);
  /** As many episodes as would make the next batch full. */
  const adapt = (): void => {
    limit = Math.max(rows, live + rows - inFlight - size(waiting));
    letIn();
  };

  const perform = async (calls: readonly Call[]): Promise<void> => {
    const requests = calls.flatMap((call) => call.requests.map(apart));
    if (inFlight === 0) since = performance.now();
    inFlight += requests.length;
    seen = { ...seen, calls: seen.calls + 1, rows: seen.rows + requests.length };
    try {
      const samples = await engine.sample(requests);
      let at = 0;
      for (const call of calls) {
        call.resolve(samples.slice(at, at + call.requests.length));
        at += call.requests.length;
      }
    } catch (error) {
      for (const call of calls) call.reject(error);
    }
    inFlight -= requests.length;
    if (inFlight === 0) seen.busyMs += performance.now() - since;
    adapt();
  };

  /** The calls that were waiting longest, as many as fit into a batch; one at least. */
  const take = (room: number): readonly Call[] => {
    let count = 1;
    while (count < waiting.length && size(waiting.slice(0, count + 1)) <= room) count += 1;
    return waiting.splice(0, count);
  };

  const pump = async (): Promise<void> => {
    if (isPumping) return;
    isPumping = true;
    for (;;) {
      // Those that were answered together, by worlds that answer at once, ask together again.
      await setImmediate();
      if (!isOpen || waiting.length === 0) break;
      const batchesItself = engine.capabilities.otherSampler === true;
      if (!batchesItself) await perform(take(rows));
      else if (inFlight >= rows) break;
      else for (const call of take(rows - inFlight)) void perform([call]).then(pump);
    }
    isPumping = false;
  };

  return {
    engine: {
      get capabilities() {
        return engine.capabilities;
      },
      sample: (requests) =>
        new Promise<Samples>((resolve, reject) => {
          waiting.push({ requests, resolve, reject });
          void pump();
        }),
    },
    admission: {
      enter: () =>
        new Promise((resolve) => {
          outside.push(resolve);
          letIn();
        }),
      leave() {
        live -= 1;
        letIn();
      },
    },
    open() {
      isOpen = true;
      void pump();
    },
    close() {
      isOpen = false;
    },
    load() {
      const { busyMs, ...counts } = seen;
      seen = { busyMs: 0, calls: 0, rows: 0, live };
      return { busySeconds: busyMs / 1000, ...counts };
    },
  };
}

/** Requests that only happened to come together do not continue together. */
function apart(request: SampleRequest): SampleRequest {
  return request.continued === true ? { ...request, continued: "apart" } : request;
}

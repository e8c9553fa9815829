/** The replicas of an engine, and how work is shared among them. */
// In the main thread too: native code does not see the environment of a worker thread.
import "@pawl/models/no-telemetry.js";
import { type Drawn, EngineError } from "@pawl/core/engine/engine.js";
import type { Caller } from "@pawl/core/processes/calls.js";
import { startThread } from "@pawl/core/processes/thread-calls.js";
import { type CopyWeights, sharedCopies } from "./model-weights.js";
import { createReplica, type JobResult, type Replica, type ReplicaStart } from "./replica.js";
import type { Sessions } from "./sessions.js";

/**
 * Models up to this size, in bytes, have one replica per thread: 8 million parameters. The products
 * of larger models are wide enough for threads to share, and several copies would need too much
 * memory.
 */
const MAX_REPLICA_BYTES = 2 ** 25;

/**
 * The replicas for a model of the given size in bytes: one here with all threads, or one per
 * thread, started when first needed.
 */
export function createReplicas(
  model: Omit<ReplicaStart, "replicas">,
  bytes: number,
  threads: number,
  sessions: Sessions,
): readonly Replica[] {
  if (threads === 1 || bytes > MAX_REPLICA_BYTES)
    return [createReplica({ ...model, replicas: 1 }, sessions)];
  const share = sharedCopies();
  return Array.from({ length: threads }, () =>
    threadReplica({ ...model, replicas: threads }, share),
  );
}

function threadReplica(start: ReplicaStart, share: CopyWeights): Replica {
  let caller: Caller | undefined;
  const started = () => {
    caller ??= startEngineThread("replica-worker", start);
    return caller;
  };
  return {
    run: (job) =>
      started().call("run", [{ ...job, weights: share(job.weights) }]) as Promise<JobResult>,
    sample: (tasks, weights, onDrawn) =>
      started().call("sample", [tasks, share(weights), onDrawn !== undefined], [], (drawn) =>
        onDrawn?.(drawn as Drawn),
      ) as ReturnType<Replica["sample"]>,
    dispose: async () => {
      if (caller === undefined || caller.ended) return;
      await caller.call("dispose", []);
      await caller.end();
    },
  };
}

/**
 * Waits for all replicas, so that none is still working when one has failed; then rethrows its
 * error.
 */
export async function together<T>(work: readonly Promise<T>[]): Promise<readonly T[]> {
  const ends = await Promise.allSettled(work);
  return ends.map((end) => {
    if (end.status === "rejected") throw end.reason;
    return end.value;
  });
}

/** Starts a worker thread of the embedded engine. */
export function startEngineThread(entry: "worker" | "replica-worker", workerData: unknown): Caller {
  return startThread({
    entry,
    workerData,
    what: "the engine",
    fail: (message, options) => new EngineError(message, options),
  });
}

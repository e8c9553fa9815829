/** A replica's side of calls, with weights copied from shared memory. */
import { type Port, serve } from "@pawl/core/processes/calls.js";
import type { SampleTask } from "./batching.js";
import { privateCopies, type WeightSet } from "./model-weights.js";
import { createReplica, type Job, type ReplicaStart } from "./replica.js";
import { createSessions } from "./sessions.js";

/** Serves the calls of the engine that holds the other end of the port. */
export function serveReplica(port: Port, start: ReplicaStart): void {
  const replica = createReplica(start, createSessions(1));
  const copied = privateCopies();

  serve(port, async (method, args, tell) => {
    if (method === "run") {
      const [job] = args as readonly [Job];
      const result = await replica.run({ ...job, weights: copied(job.weights) });
      const arrays = [
        ...result.results.flatMap((one) => [...one.values()]),
        ...(result.gradients === undefined ? [] : [result.gradients]),
      ];
      return { result, moved: arrays.map((array) => array.buffer) };
    }
    if (method === "sample") {
      const [tasks, weights, isHeard] = args as readonly [
        readonly SampleTask[],
        WeightSet,
        boolean,
      ];
      const onDrawn = isHeard ? tell : undefined;
      return { result: await replica.sample(tasks, copied(weights), onDrawn) };
    }
    await replica.dispose();
    return { result: undefined };
  });
}

/** The worker thread of a replica, with weights copied from shared memory. */
import { parentPort, workerData } from "node:worker_threads";
import { serve } from "@pawl/core/processes/calls.js";
import { threadPort } from "@pawl/core/processes/thread-calls.js";
import type { SampleTask } from "./batching.js";
import { privateCopies, type WeightSet } from "./model-weights.js";
import { createReplica, type Job, type ReplicaStart } from "./replica.js";
import { createSessions } from "./sessions.js";

const port = parentPort;
if (port === null) throw new Error("this file runs as a worker thread of a replica");
const replica = createReplica(workerData as ReplicaStart, createSessions(1));
const copied = privateCopies();

serve(threadPort(port), async (method, args, tell) => {
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
    const [tasks, weights, isHeard] = args as readonly [readonly SampleTask[], WeightSet, boolean];
    const onDrawn = isHeard ? tell : undefined;
    return { result: await replica.sample(tasks, copied(weights), onDrawn) };
  }
  await replica.dispose();
  return { result: undefined };
});

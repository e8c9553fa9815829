/** The worker thread of a lane: the same lane, with weights copied from shared memory. */
import { parentPort, workerData } from "node:worker_threads";
import { serve } from "./calls.js";
import type { SampleTask } from "./decoder.js";
import { createLane, type Job, type LaneStart } from "./lane.js";
import { createSessions } from "./sessions.js";
import { createCopies, type WeightSet } from "./weight-set.js";

const port = parentPort;
if (port === null) throw new Error("this file runs as a worker thread of a lane");
const { config, lanes } = workerData as LaneStart;
const lane = createLane(config, createSessions(1), lanes);
const copied = createCopies();

serve(port, async (method, args) => {
  if (method === "run") {
    const [job] = args as readonly [Job];
    const result = await lane.run({ ...job, weights: copied(job.weights) });
    const arrays = [
      ...result.results.flatMap((found) => [...found.values()]),
      ...(result.gradients === undefined ? [] : [result.gradients]),
    ];
    return { result, moved: arrays.map((array) => array.buffer) };
  }
  if (method === "sample") {
    const [tasks, weights] = args as readonly [readonly SampleTask[], WeightSet];
    return { result: await lane.sample(tasks, copied(weights)) };
  }
  await lane.dispose();
  return { result: undefined };
});

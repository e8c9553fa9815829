/** The worker thread of an embedded engine. */
import { parentPort, workerData } from "node:worker_threads";
import { threadPort } from "@pawl/core/processes/thread-calls.js";
import type { EmbeddedOptions } from "./core.js";
import { serveEngine } from "./engine-calls.js";

const port = parentPort;
if (port === null) throw new Error("this file runs as a worker thread of the embedded engine");
const { options, threads } = workerData as {
  readonly options: EmbeddedOptions;
  readonly threads: number;
};
serveEngine(threadPort(port), options, threads);

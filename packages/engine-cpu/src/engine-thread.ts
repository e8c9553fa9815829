/** Threads of the embedded engine. */
// In the main thread too: native code does not see the environment of a worker thread.
import "@pawl/models/no-telemetry.js";
import { EngineError } from "@pawl/core/engine/engine.js";
import type { Caller } from "@pawl/core/processes/calls.js";
import { startThread } from "@pawl/core/processes/thread-calls.js";

/** Starts a worker. */
export function startEngineThread(entry: "worker" | "replica-worker", workerData: unknown): Caller {
  return startThread({
    entry,
    workerData,
    what: "the engine",
    fail: (message, options) => new EngineError(message, options),
  });
}

/** Threads of the embedded engine. */
// In the main thread too: native code does not see the environment of a worker thread.
import "../../no-telemetry.js";
import type { Caller } from "../../calls.js";
import { startThread } from "../../thread-calls.js";
import { EngineError } from "../engine.js";

/** Starts a worker. */
export function startEngineThread(entry: "worker" | "replica-worker", workerData: unknown): Caller {
  return startThread({
    entry,
    workerData,
    what: "the engine",
    fail: (message, options) => new EngineError(message, options),
  });
}

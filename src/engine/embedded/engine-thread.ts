/** Threads of the embedded engine. */
import type { Caller } from "../../calls.js";
import { startThread } from "../../thread-calls.js";
import { EngineError } from "../engine.js";

/** Starts the worker in the named file, next to this one. */
export function startEngineThread(name: string, workerData: unknown): Caller {
  return startThread({
    file: new URL(name, import.meta.url),
    workerData,
    what: "the engine",
    fail: (message, options) => new EngineError(message, options),
  });
}

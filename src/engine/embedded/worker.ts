/** The worker thread of an embedded engine: carries out one call after another. */
import { parentPort, workerData } from "node:worker_threads";
import { EngineError } from "../engine.js";
import { type Core, createCore, type EmbeddedOptions } from "./core.js";
import type { Call, Reply } from "./messages.js";

const port = parentPort;
if (port === null) throw new Error("this file runs as a worker thread of the embedded engine");
const { options, threads } = workerData as {
  readonly options: EmbeddedOptions;
  readonly threads: number;
};

const core = createCore(options, threads);
let queue: Promise<void> = core.then(
  (ready) => port.postMessage({ id: 0, result: ready.capabilities() } satisfies Reply),
  (error) => port.postMessage(failure(0, error)),
);

port.on("message", (call: Call) => {
  queue = queue.then(async () => {
    try {
      const ready = await core;
      const result = await perform(ready, call);
      port.postMessage({ id: call.id, result, capabilities: ready.capabilities() } satisfies Reply);
    } catch (error) {
      port.postMessage(failure(call.id, error));
    }
  });
});

function perform(ready: Core, { method, args }: Call): Promise<unknown> {
  // The client is typed by the same interface, so the arguments are those of the method.
  const run = ready[method] as (...given: readonly unknown[]) => Promise<unknown>;
  return Promise.resolve(run(...args));
}

function failure(id: number, error: unknown): Reply {
  const message = error instanceof Error ? error.message : String(error);
  const stack = error instanceof Error ? error.stack : undefined;
  return { id, error: { message, stack, expected: error instanceof EngineError } };
}

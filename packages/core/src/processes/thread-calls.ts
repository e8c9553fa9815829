/** Calls to a worker thread. */
import { type MessagePort, Worker } from "node:worker_threads";
import { builtFile, type Caller, createCaller, type Fail, type Port } from "./calls.js";

/** A worker thread to start. */
export interface Thread {
  /** The name of its entry in packaging/join.js. */
  readonly entry: string;
  readonly workerData: unknown;
  /** What works in it, for errors: `the engine`. */
  readonly what: string;
  readonly fail: Fail;
}

/** Starts a worker thread. */
export function startThread({ entry, workerData, what, fail }: Thread): Caller {
  const worker = new Worker(builtFile(entry), { workerData });
  const { caller, answered, lost } = createCaller(
    {
      send: (message, moved) => worker.postMessage(message, moved as ArrayBuffer[]),
      work: (isWorking) => (isWorking ? worker.ref() : worker.unref()),
      end: async () => void (await worker.terminate()),
    },
    fail,
  );
  worker.on("message", answered);
  worker.on("error", (error) =>
    lost(fail(`${what}'s thread failed: ${String(error)}`, { cause: error })),
  );
  worker.on("exit", () => lost(fail(`${what} was disposed, or its thread ended`)));
  return caller;
}

/** A thread's own end. */
export const threadPort = (port: MessagePort): Port => ({
  onMessage: (listener) => void port.on("message", listener),
  send: (message, moved) => port.postMessage(message, moved as ArrayBuffer[]),
});

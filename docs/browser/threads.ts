/** Calls to workers of the browser, in the place of Node's threads; the engine stays in its caller's. */
import { type Callee, type Caller, createCaller, type Fail } from "@pawl/core/processes/calls.js";
import type { EmbeddedOptions } from "@pawl/engine-cpu/core.js";
import { serveEngine } from "@pawl/engine-cpu/engine-calls.js";
import { hear } from "./silence.js";

interface Thread {
  readonly entry: string;
  readonly workerData: unknown;
  readonly what: string;
  readonly fail: Fail;
}

/** Starts a worker, or an engine here: its files are those of this worker. */
export function startThread({ entry, workerData, what, fail }: Thread): Caller {
  if (entry === "worker") return engineHere(workerData, fail);
  const worker = new Worker(new URL(`${entry}.js`, self.location.href), { type: "module" });
  const { caller, answered, lost } = createCaller(
    calleeOf(
      (message, moved) => worker.postMessage(message, moved),
      () => {
        stop();
        lost(fail(`${what} was disposed`));
      },
    ),
    fail,
  );
  const stop = hear(worker, answered, (why) => lost(fail(`${what} is lost: ${why}`)));
  worker.postMessage(workerData);
  return caller;
}

function engineHere(workerData: unknown, fail: Fail): Caller {
  const { options, threads } = workerData as {
    readonly options: EmbeddedOptions;
    readonly threads: number;
  };
  let hear: (message: unknown) => void = () => undefined;
  const { caller, answered, lost } = createCaller(
    calleeOf(
      (message) => hear(structuredClone(message)),
      () => lost(fail("the engine was disposed")),
    ),
    fail,
  );
  const port = {
    onMessage: (listener: (message: unknown) => void) => {
      hear = listener;
    },
    send: (message: object) => queueMicrotask(() => answered(message)),
  };
  serveEngine(port, options, threads);
  return caller;
}

const calleeOf = (
  send: (message: object, moved: Transferable[]) => void,
  end: () => void,
): Callee => ({
  send: (message, moved) => send(message, [...moved] as ArrayBuffer[]),
  work: () => undefined,
  end: async () => end(),
});

/** The worker thread of an embedded engine: executes one call after another. */
import { parentPort, workerData } from "node:worker_threads";
import { serve } from "@pawl/core/processes/calls.js";
import { threadPort } from "@pawl/core/processes/thread-calls.js";
import { type Core, createCore, type EmbeddedOptions } from "./core.js";
import { flushDenormals } from "./denormals.js";

const port = parentPort;
if (port === null) throw new Error("this file runs as a worker thread of the embedded engine");
const { options, threads } = workerData as {
  readonly options: EmbeddedOptions;
  readonly threads: number;
};

/** The arguments of a call, with whom to tell how far it is. */
function heard(
  method: string,
  args: readonly unknown[],
  tell: (progress: unknown) => void,
): readonly unknown[] {
  if (method === "forwardBackward") return [args[0], args[1], tell];
  if (method === "sample") return [args[0], args[1], args[2] === true ? tell : undefined];
  return args;
}

const core = flushDenormals().then(() => createCore(options, threads));
// The first call reports the error; until then it must not end the thread.
core.catch(() => undefined);

serve(threadPort(port), async (method, args, tell) => {
  const ready = await core;
  // The client is typed by the same interface, so the arguments are those of the method.
  const run = ready[method as keyof Core] as (...given: readonly unknown[]) => unknown;
  const value = await run(...heard(method, args, tell));
  return { result: { value, capabilities: ready.capabilities() } };
});

/** The engine's side of calls: executes one after another. */
import { type Port, serve } from "@pawl/core/processes/calls.js";
import { type Core, createCore, type EmbeddedOptions } from "./core.js";
import { flushDenormals } from "./denormals.js";

/** Opens a model, and serves the calls of one who holds the other end of the port. */
export function serveEngine(port: Port, options: EmbeddedOptions, threads: number): void {
  const core = flushDenormals().then(() => createCore(options, threads));
  // The first call reports the error; until then it must not end the thread.
  core.catch(() => undefined);

  serve(port, async (method, args, tell) => {
    const ready = await core;
    // The client is typed by the same interface, so the arguments are those of the method.
    const run = ready[method as keyof Core] as (...given: readonly unknown[]) => unknown;
    const value = await run(...heard(method, args, tell));
    return { result: { value, capabilities: ready.capabilities() } };
  });
}

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

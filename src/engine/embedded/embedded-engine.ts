/** The embedded engine as others see it: an `Engine` whose work is done in a worker thread. */
import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";
import {
  type Capabilities,
  type Engine,
  EngineError,
  type SampleRequest,
  type TargetSequence,
} from "../engine.js";
import type { EmbeddedOptions } from "./core.js";
import type { Call, Method, Reply } from "./messages.js";

/** Starts an engine in its own thread and waits until its model is ready. */
export async function createEmbeddedEngine(options: EmbeddedOptions): Promise<Engine> {
  const worker = startWorker({ options, threads: options.threads ?? availableParallelism() });
  const waiting = new Map<number, { resolve(value: unknown): void; reject(error: Error): void }>();
  let capabilities: Capabilities | undefined;
  let ended: Error | undefined;
  let lastId = 0;
  const answer = (id: number) =>
    new Promise<unknown>((resolve, reject) => {
      waiting.set(id, { resolve, reject });
    });
  const end = (error: Error) => {
    ended ??= error;
    for (const { reject } of waiting.values()) reject(ended);
    waiting.clear();
  };
  worker.on("message", (reply: Reply) => {
    capabilities = reply.capabilities ?? capabilities;
    const call = waiting.get(reply.id);
    waiting.delete(reply.id);
    if (waiting.size === 0) worker.unref();
    if (reply.error === undefined) call?.resolve(reply.result);
    else call?.reject(toError(reply.error));
  });
  worker.on("error", (error) =>
    end(new EngineError(`the engine's thread failed: ${String(error)}`, { cause: error })),
  );
  worker.on("exit", () => end(new EngineError("the engine was disposed of, or its thread ended")));
  const call = (method: Method, ...args: readonly unknown[]): Promise<unknown> => {
    if (ended !== undefined) return Promise.reject(ended);
    lastId += 1;
    const result = answer(lastId);
    // An idle engine does not keep the process alive, a working one does.
    worker.ref();
    worker.postMessage({ id: lastId, method, args } satisfies Call);
    return result;
  };
  const ready = answer(0);
  try {
    capabilities = (await ready) as Capabilities;
  } catch (error) {
    await worker.terminate();
    throw error;
  }
  const typed = <T>(method: Method, ...args: readonly unknown[]) =>
    call(method, ...args) as Promise<T>;
  return {
    get capabilities() {
      return capabilities!;
    },
    sample: (requests) => typed("sample", requests.map(plainRequest)),
    forward: (sequences, options) => typed("forward", sequences.map(plainSequence), options),
    forwardBackward: (sequences, objective) =>
      typed(
        "forwardBackward",
        sequences.map((sequence) => ({
          ...plainSequence(sequence),
          inputs: Object.fromEntries(
            Object.entries(sequence.inputs).map(([name, values]) => [name, numbers(values)]),
          ),
        })),
        objective,
      ),
    optimStep: (params) => typed("optimStep", params),
    discardGradients: () => typed("discardGradients"),
    snapshotReference: () => typed("snapshotReference"),
    save: (folder, options) => typed("save", folder, options),
    load: (folder) => typed("load", folder),
    dispose: async () => {
      if (ended !== undefined) return;
      await call("dispose");
      await worker.terminate();
    },
  };
}

/** Copies, because a view would drag its whole buffer over to the worker. */
function numbers(values: ArrayLike<number>): Float64Array {
  return Float64Array.from(values);
}

function plainSequence({ ids, targets }: TargetSequence): TargetSequence {
  return { ids: numbers(ids), ...(targets === undefined ? {} : { targets: numbers(targets) }) };
}

function plainRequest(request: SampleRequest): SampleRequest {
  return { ...request, prompt: numbers(request.prompt) };
}

function toError({ message, stack, expected }: NonNullable<Reply["error"]>): Error {
  const error = expected ? new EngineError(message) : new Error(message);
  if (!expected && stack !== undefined) error.stack = stack;
  return error;
}

/** Starts the worker: compiled, or from its TypeScript source when this file is run from source. */
function startWorker(workerData: unknown): Worker {
  const compiled = import.meta.url.endsWith(".js");
  const file = new URL(compiled ? "./worker.js" : "./worker.ts", import.meta.url);
  if (compiled) return new Worker(file, { workerData });
  // Node 20 cannot load TypeScript by itself.
  const path = JSON.stringify(fileURLToPath(file));
  const load = `require("jiti").createJiti(${path}).import(${path});`;
  return new Worker(load, { eval: true, workerData });
}

/** Compiled graphs, made when first needed and kept: one for each kind of work and objective. */
import * as ort from "onnxruntime-node";
import { EngineError } from "../engine.js";
import type { Program } from "./program.js";

/** Tensors by name, as a graph takes them. */
export type Feeds = Record<string, ort.Tensor>;

/** A compiled graph. */
export interface Compiled {
  /** Runs it; results come back under the names the program gave them. */
  run(feeds: Feeds): Promise<ReadonlyMap<string, Float32Array>>;
}

export interface Sessions {
  /** The graph of that key, built if it is not there; on fewer threads than the rest if so told. */
  get(key: string, build: () => Program, options?: { readonly threads: number }): Promise<Compiled>;
  dispose(): Promise<void>;
}

/** Objectives change rarely; what an old one compiled to is dropped when this many are held. */
const KEPT = 24;

/** An empty cache of compiled graphs that run on the given number of threads. */
export function createSessions(threads: number): Sessions {
  const sessions = new Map<
    string,
    { readonly session: ort.InferenceSession; readonly program: Program }
  >();
  return {
    get: async (key, build, options) => {
      const known = sessions.get(key);
      // Moved to the end: the first one is the one that was not used for longest.
      if (known !== undefined) sessions.delete(key);
      const entry = known ?? (await compile(build(), options?.threads ?? threads));
      sessions.set(key, entry);
      if (sessions.size > KEPT) {
        const [oldest, { session }] = sessions.entries().next().value!;
        sessions.delete(oldest);
        await session.release();
      }
      return { run: (feeds) => run(entry.session, entry.program, feeds) };
    },
    dispose: async () => {
      for (const { session } of sessions.values()) await session.release();
      sessions.clear();
    },
  };
}

async function compile(program: Program, threads: number) {
  const session = await ort.InferenceSession.create(program.model, {
    intraOpNumThreads: threads,
    interOpNumThreads: 1,
    executionMode: "sequential",
    graphOptimizationLevel: "all",
    // Shapes differ from run to run, so a plan made for one of them would only cost memory.
    enableMemPattern: false,
    // Masked attention weights underflow, and arithmetic on denormal numbers is ten times slower.
    extra: { session: { set_denormal_as_zero: "1" } },
    logSeverityLevel: 3,
  });
  return { session, program };
}

async function run(
  session: ort.InferenceSession,
  program: Program,
  feeds: Feeds,
): Promise<ReadonlyMap<string, Float32Array>> {
  try {
    const outputs = await session.run(feeds, [...program.results.values()]);
    return new Map(
      [...program.results].map(([name, tensor]) => [name, outputs[tensor]!.data as Float32Array]),
    );
  } catch (error) {
    throw explain(error);
  }
}

function explain(error: unknown): Error {
  const message = error instanceof Error ? error.message : String(error);
  if (/alloc|memory/i.test(message))
    return new EngineError(
      `out of memory while computing: use shorter sequences, a smaller model or a machine with more memory (${message})`,
      { cause: error },
    );
  return new EngineError(`ONNX Runtime could not run a graph: ${message}`, { cause: error });
}

/** A float tensor over existing numbers, which are not copied. */
export function floats(data: Float32Array, shape: readonly number[]): ort.Tensor {
  return new ort.Tensor("float32", data, shape);
}

/** A 32-bit integer tensor over existing numbers, which are not copied. */
export function integers(data: Int32Array, shape: readonly number[]): ort.Tensor {
  return new ort.Tensor("int32", data, shape);
}

/** Compiled graphs, created when first needed and kept: one for each kind of work and objective. */

import { EngineError } from "@pawl/core/engine/engine.js";
import { onnxRuntime } from "@pawl/models/onnx-runtime.js";
import type { InferenceSession, Tensor } from "onnxruntime-common";
import type { Program } from "./program.js";

/** Numbers as a graph takes them; plain data, so that they can be sent to another thread. */
export interface Feed {
  readonly type: "float32" | "int32" | "bool";
  readonly data: Float32Array | Int32Array | Uint8Array;
  readonly shape: readonly number[];
}

/** Tensors by name, as a graph takes them. */
export type Feeds = Record<string, Feed>;

/** A graph's results, by the names that its program defines. */
export type Results = ReadonlyMap<string, Float32Array>;

/** A compiled graph. */
export interface Compiled {
  /**
   * Runs it; results are returned under the names the program gave them. Those named in `into` are
   * written there instead. That may be an input's memory, if the operator that reads the input has
   * read each number before it writes the result.
   */
  run(feeds: Feeds, into?: Feeds): Promise<Results>;
}

interface SessionOptions {
  /** Use fewer threads than the rest. */
  readonly threads?: number;
  /** A graph of another version is dropped and rebuilt: it holds outdated weights. */
  readonly version?: number;
}

export interface Sessions {
  /** The graph with that key, built if missing. */
  get(key: string, build: () => Program, options?: SessionOptions): Promise<Compiled>;
  dispose(): Promise<void>;
}

/** Objectives change rarely; the least recently used graph is dropped when this many are held. */
const KEPT = 24;
/** The same for large graphs: a graph keeps the memory that its activations needed. */
const KEPT_LARGE = 1;

/** An empty cache of compiled graphs that run on the given number of threads. */
export function createSessions(threads: number): Sessions {
  const sessions = new Map<string, Entry>();
  return {
    get: async (key, build, options) => {
      const held = sessions.get(key);
      const isCurrent = held !== undefined && held.version === options?.version;
      // Moved to the end, so that the first one is the least recently used.
      sessions.delete(key);
      if (!isCurrent) await held?.session.release();
      const entry = isCurrent ? held : await compile(build(), threads, options);
      sessions.set(key, entry);
      const large = [...sessions].filter(([, { isLarge }]) => isLarge);
      const [oldest] = large.length > KEPT_LARGE ? large : sessions.size > KEPT ? sessions : [];
      if (oldest !== undefined) {
        sessions.delete(oldest[0]);
        await oldest[1].session.release();
      }
      return { run: (feeds, into) => run(entry.session, entry.results, feeds, into) };
    },
    dispose: async () => {
      for (const { session } of sessions.values()) await session.release();
      sessions.clear();
    },
  };
}

interface Entry {
  readonly session: InferenceSession;
  readonly results: Program["results"];
  readonly isLarge: boolean;
  readonly version: number | undefined;
}

async function compile(
  program: Program,
  threads: number,
  options: SessionOptions = {},
): Promise<Entry> {
  const session = await onnxRuntime().InferenceSession.create(program.model, {
    intraOpNumThreads: options.threads ?? threads,
    interOpNumThreads: 1,
    executionMode: "sequential",
    graphOptimizationLevel: "all",
    // Shapes differ from run to run, so a memory plan for one of them would only waste memory.
    enableMemPattern: false,
    // Masked attention weights underflow, and arithmetic on denormal numbers is ten times slower;
    // `denormals.ts` says in which threads.
    extra: { session: { set_denormal_as_zero: "1" } },
    logSeverityLevel: 3,
  });
  // The model itself is not kept, since it may hold weights.
  const { results, isLarge } = program;
  return { session, results, isLarge, version: options.version };
}

async function run(
  session: InferenceSession,
  results: Program["results"],
  feeds: Feeds,
  into: Feeds = {},
): Promise<Results> {
  try {
    const tensors = Object.fromEntries(
      Object.entries(feeds).map(([name, feed]) => [name, toTensor(feed)]),
    );
    const fetches = Object.fromEntries(
      [...results].map(([name, tensor]) => {
        const given = into[name];
        return [tensor, given === undefined ? null : toTensor(given)];
      }),
    );
    const outputs = await session.run(tensors, fetches);
    return new Map(
      [...results].flatMap(([name, tensor]) =>
        name in into ? [] : [[name, outputs[tensor]!.data as Float32Array] as const],
      ),
    );
  } catch (error) {
    throw explain(error);
  }
}

function toTensor({ type, data, shape }: Feed): Tensor {
  const { Tensor } = onnxRuntime();
  return new Tensor(type, data, shape);
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
export function floats(data: Float32Array, shape: readonly number[]): Feed {
  return { type: "float32", data, shape };
}

/** A tensor of truth values over existing bytes, which are not copied. */
export function flags(data: Uint8Array, shape: readonly number[]): Feed {
  return { type: "bool", data, shape };
}

/** A 32-bit integer tensor over existing numbers, which are not copied. */
export function integers(data: Int32Array, shape: readonly number[]): Feed {
  return { type: "int32", data, shape };
}

/**
 * A replica of the model: one share of the processor, which runs jobs one after another.
 *
 * A small model runs on several single-threaded replicas, on different sequences (data
 * parallelism): threads that share every operator wait for each other after each one, and pass
 * results from core to core. A large model has one replica with all threads, because every replica
 * keeps its own weights and gradient sums.
 */

import type { Drawn, Sample } from "@pawl/core/engine/engine.js";
import { MAX_STORED_BYTES } from "@pawl/models/model-memory.js";
import { type LoraOptions, modelSpecs, trainedSpecs } from "@pawl/models/weights/lora.js";
import type { ModelConfig } from "@pawl/models/weights/model-config.js";
import { VALUE_HEAD } from "@pawl/models/weights/tensor-names.js";
import type { SampleTask } from "./batching.js";
import { flatTensors } from "./flat-tensors.js";
import { createGenerator } from "./generator.js";
import type { WeightSet } from "./model-weights.js";
import { gradientName, type Program, sumName } from "./program.js";
import { type Feeds, floats, type Results, type Sessions } from "./sessions.js";

/** A graph to run, and its inputs besides weights and sums. */
export interface MicroBatchRun {
  /** Identifies the program, which is compiled once per key. */
  readonly key: string;
  readonly program: Program;
  readonly feeds: Feeds;
}

/** Graphs to run one after another with the same weights. */
export interface Job {
  readonly microBatches: readonly MicroBatchRun[];
  readonly weights: WeightSet;
  /** The weights they read. */
  readonly weightNames: readonly string[];
  /** The weights whose gradients they accumulate. */
  readonly trained: readonly string[];
}

/** The result of a job. */
export interface JobResult {
  /** By micro-batch. */
  readonly results: readonly Results[];
  /**
   * Gradients summed over the micro-batches, laid out as in `FlatTensors`; zero for weights that
   * are not trained, undefined if none is.
   */
  readonly gradients: Float32Array | undefined;
}

export interface Replica {
  /** Tells which micro-batch is done; replicas in threads of their own are quick, and do not. */
  run(job: Job, onDone?: (microBatch: number) => void): Promise<JobResult>;
  sample(
    tasks: readonly SampleTask[],
    weights: WeightSet,
    onDrawn?: (drawn: Drawn) => void,
  ): Promise<readonly (readonly Sample[])[]>;
  dispose(): Promise<void>;
}

/** What a replica in its own thread starts from. */
export interface ReplicaStart {
  readonly config: ModelConfig;
  /** How many replicas there are. */
  readonly replicas: number;
  /** The adapters that are trained; without them, all weights are. */
  readonly lora?: LoraOptions | undefined;
}

/** Maximum bytes of keys and values kept by all replicas together, for policy and actor each. */
const MAX_CACHED_BYTES = 2 ** 29;

/** A replica in the calling thread, one of `replicas`. */
export function createReplica(
  { config, replicas, lora }: ReplicaStart,
  sessions: Sessions,
): Replica {
  const shapes = new Map(modelSpecs(config, lora).map((spec) => [spec.name, spec.shape]));
  const options = {
    maxCachedBytes: MAX_CACHED_BYTES / replicas,
    // Learning needs the memory; at 16 rows and more a copy in the decode graph gains a few percent.
    ...(lora !== undefined && { maxStoredDecodeBytes: MAX_STORED_BYTES }),
  };
  const generators = {
    policy: createGenerator(config, sessions, options),
    actor: createGenerator(config, sessions, options),
  };
  return {
    run: async ({ microBatches, weights, weightNames, trained }, onDone) => {
      // Learning needs the memory, and the cached prefixes are no longer useful.
      if (weights.name === "policy") generators.policy.evictOlder(weights.version);
      const feed = (name: string, data: Float32Array) => floats(data, shapes.get(name)!);
      const given: Feeds = {};
      for (const name of weightNames) given[name] = feed(name, weights.arrays.get(name)!);
      const gradients =
        trained.length === 0
          ? undefined
          : flatTensors(trainedSpecs(config, weights.arrays.has(VALUE_HEAD), lora));
      // Each micro-batch reads the sums so far and overwrites them with the new ones.
      const into: Feeds = {};
      for (const name of trained) {
        const sum = feed(name, gradients!.tensors.get(name)!);
        given[sumName(name)] = sum;
        into[gradientName(name)] = sum;
      }
      const results: Results[] = [];
      for (const [at, { key, program, feeds }] of microBatches.entries()) {
        const compiled = await sessions.get(key, () => program);
        results.push(await compiled.run({ ...feeds, ...given }, into));
        onDone?.(at);
      }
      return { results, gradients: gradients?.data };
    },
    sample: (tasks, weights, onDrawn) =>
      generators[weights.name === "actor" ? "actor" : "policy"].sample(tasks, weights, onDrawn),
    dispose: () => sessions.dispose(),
  };
}

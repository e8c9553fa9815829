/**
 * A replica of the model: one share of the processor, which computes pieces of work one after another.
 *
 * A small model is computed by several replicas of one thread each, on different sequences (data
 * parallelism): threads that share every operator wait for each other after each, and pass what they
 * compute from core to core. A large one has one replica with all threads, because every replica keeps
 * weights and sums of gradients of its own.
 */

import type { Sample } from "../engine.js";
import type { ModelConfig } from "../weights/model-config.js";
import { tensorSpecs, VALUE_HEAD } from "../weights/tensor-names.js";
import type { SampleTask } from "./batching.js";
import { flatTensors } from "./flat-tensors.js";
import { createGenerator } from "./generator.js";
import { gradientName, type Program, sumName } from "./program.js";
import { type Feeds, floats, type Results, type Sessions } from "./sessions.js";
import type { WeightSet } from "./weight-set.js";

/** A graph to run, and what it takes besides weights and sums. */
export interface MicroBatchRun {
  /** Names the program: the same key is compiled once. */
  readonly key: string;
  readonly program: Program;
  readonly feeds: Feeds;
}

/** Graphs to run one after another with the same weights. */
export interface Job {
  readonly microBatches: readonly MicroBatchRun[];
  readonly weights: WeightSet;
  /** The weights they take. */
  readonly weightNames: readonly string[];
  /** The weights whose gradients they add up. */
  readonly trained: readonly string[];
}

/** What came of a job. */
export interface JobResult {
  /** By micro-batch. */
  readonly results: readonly Results[];
  /** Gradients summed over the micro-batches, as `FlatTensors` lie; zero for what is not trained, absent if nothing is. */
  readonly gradients: Float32Array | undefined;
}

export interface Replica {
  run(job: Job): Promise<JobResult>;
  sample(tasks: readonly SampleTask[], weights: WeightSet): Promise<readonly (readonly Sample[])[]>;
  dispose(): Promise<void>;
}

/** What a replica in a thread of its own starts from. */
export interface ReplicaStart {
  readonly config: ModelConfig;
  /** How many replicas there are. */
  readonly replicas: number;
}

/** Bytes of keys and values that all replicas together keep at most. */
const MAX_CACHED_BYTES = 2 ** 29;

/** A replica in the thread that calls it, one of so many. */
export function createReplica(config: ModelConfig, sessions: Sessions, replicas = 1): Replica {
  const shapes = new Map(tensorSpecs(config).map((spec) => [spec.name, spec.shape]));
  const generator = createGenerator(config, sessions, {
    maxCachedBytes: MAX_CACHED_BYTES / replicas,
  });
  return {
    run: async ({ microBatches, weights, weightNames, trained }) => {
      // Room for learning, where no cached prefix is of use any more.
      if (weights.name === "policy") generator.evictOlder(weights.version);
      const feed = (name: string, data: Float32Array) => floats(data, shapes.get(name)!);
      const given: Feeds = {};
      for (const name of weightNames) given[name] = feed(name, weights.arrays.get(name)!);
      const gradients =
        trained.length === 0 ? undefined : flatTensors(config, weights.arrays.has(VALUE_HEAD));
      // Each micro-batch reads the sums so far and writes the new ones to the same place.
      const into: Feeds = {};
      for (const name of trained) {
        const sum = feed(name, gradients!.tensors.get(name)!);
        given[sumName(name)] = sum;
        into[gradientName(name)] = sum;
      }
      const results: Results[] = [];
      for (const { key, program, feeds } of microBatches) {
        const compiled = await sessions.get(key, () => program);
        results.push(await compiled.run({ ...feeds, ...given }, into));
      }
      return { results, gradients: gradients?.data };
    },
    sample: (tasks, weights) => generator.sample(tasks, weights),
    dispose: () => sessions.dispose(),
  };
}

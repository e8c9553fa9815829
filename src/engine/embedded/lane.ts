/**
 * A lane: one share of the processor, which computes pieces of work one after another.
 *
 * A small model is computed by several lanes of one thread each, on different sequences: threads that
 * share every operator wait for each other after each, and pass what they compute from core to core. A
 * large one has one lane with all threads, because every lane keeps weights and sums of its own.
 */

import type { Sample } from "../engine.js";
import type { ModelConfig } from "../weights/model-config.js";
import { tensorSpecs, VALUE_HEAD } from "../weights/tensor-names.js";
import { createDecoder, type SampleTask } from "./decoder.js";
import { flatTensors } from "./flat-tensors.js";
import { gradientName, type Program, sumName } from "./program.js";
import { type Feeds, floats, type Results, type Sessions } from "./sessions.js";
import type { WeightSet } from "./weight-set.js";

/** A graph to run, and what it takes besides weights and sums. */
export interface JobStep {
  /** Names the program: the same key is compiled once. */
  readonly key: string;
  readonly program: Program;
  readonly feeds: Feeds;
}

/** Graphs to run one after another with the same weights. */
export interface Job {
  readonly steps: readonly JobStep[];
  readonly weights: WeightSet;
  /** The weights they take. */
  readonly weightNames: readonly string[];
  /** The weights whose gradients they add up. */
  readonly trained: readonly string[];
}

/** What came of a job. */
export interface JobResult {
  /** By step. */
  readonly results: readonly Results[];
  /** Gradients summed over the steps, as `FlatTensors` lie; zero for what is not trained, absent if nothing is. */
  readonly gradients: Float32Array | undefined;
}

export interface Lane {
  run(job: Job): Promise<JobResult>;
  sample(tasks: readonly SampleTask[], weights: WeightSet): Promise<readonly (readonly Sample[])[]>;
  dispose(): Promise<void>;
}

/** What a lane in a thread of its own starts from. */
export interface LaneStart {
  readonly config: ModelConfig;
  /** How many lanes there are. */
  readonly lanes: number;
}

/** Bytes of keys and values that all lanes together keep at most. */
const MAX_KEPT_BYTES = 2 ** 29;

/** A lane in the thread that calls it, one of so many. */
export function createLane(config: ModelConfig, sessions: Sessions, lanes = 1): Lane {
  const shapes = new Map(tensorSpecs(config).map((spec) => [spec.name, spec.shape]));
  const decoder = createDecoder(config, sessions, { maxKeptBytes: MAX_KEPT_BYTES / lanes });
  return {
    run: async ({ steps, weights, weightNames, trained }) => {
      // Room for learning, where nothing that was read before is of use any more.
      if (weights.name === "policy") decoder.forget(weights.version);
      const feed = (name: string, data: Float32Array) => floats(data, shapes.get(name)!);
      const given: Feeds = {};
      for (const name of weightNames) given[name] = feed(name, weights.arrays.get(name)!);
      const gradients =
        trained.length === 0 ? undefined : flatTensors(config, weights.arrays.has(VALUE_HEAD));
      // Each step reads the sums so far and writes the new ones to the same place.
      const into: Feeds = {};
      for (const name of trained) {
        const sum = feed(name, gradients!.tensors.get(name)!);
        given[sumName(name)] = sum;
        into[gradientName(name)] = sum;
      }
      const results: Results[] = [];
      for (const { key, program, feeds } of steps) {
        const compiled = await sessions.get(key, () => program);
        results.push(await compiled.run({ ...feeds, ...given }, into));
      }
      return { results, gradients: gradients?.data };
    },
    sample: (tasks, weights) => decoder.sample(tasks, weights),
    dispose: () => sessions.dispose(),
  };
}

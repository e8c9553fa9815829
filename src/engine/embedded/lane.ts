/**
 * A lane: one share of the processor, which computes pieces of work one after another.
 *
 * A small model is computed by several lanes of one thread each, on different sequences: threads that
 * share every operator wait for each other after each, and pass what they compute from core to core. A
 * large one has one lane with all threads, because every lane keeps weights and sums of its own.
 */
import type { ModelConfig } from "../weights/model-config.js";
import { tensorSpecs } from "../weights/tensor-names.js";
import { createDecoder, type SampledGroup, type SampleTask } from "./decoder.js";
import type { Program } from "./program.js";
import { type Feeds, floats, type Results, type Sessions } from "./sessions.js";
import type { WeightSet } from "./weight-set.js";

/** A graph to run: what it takes besides weights, and which weights it takes. */
export interface Job {
  /** Names the program: the same key is compiled once. */
  readonly key: string;
  readonly program: Program;
  readonly feeds: Feeds;
  readonly weights: WeightSet;
  readonly weightNames: readonly string[];
}

export interface Lane {
  run(job: Job): Promise<Results>;
  sample(tasks: readonly SampleTask[], weights: WeightSet): Promise<readonly SampledGroup[]>;
  dispose(): Promise<void>;
}

/** A lane in the thread that calls it. */
export function createLane(config: ModelConfig, sessions: Sessions): Lane {
  const shapes = new Map(tensorSpecs(config).map((spec) => [spec.name, spec.shape]));
  const decoder = createDecoder(config, sessions);
  return {
    run: async ({ key, program, feeds, weights, weightNames }) => {
      const compiled = await sessions.get(key, () => program);
      const given = weightNames.map((name) => [
        name,
        floats(weights.arrays.get(name)!, shapes.get(name)!),
      ]);
      return compiled.run({ ...feeds, ...Object.fromEntries(given) });
    },
    sample: (tasks, weights) => decoder.sample(tasks, weights),
    dispose: () => sessions.dispose(),
  };
}

/**
 * A training run for tests that takes a second or two: one small room, a handful of short episodes.
 */
import { findEnvKind } from "@pawl/core/envs/registry.js";
import { type TrainConfig, trainConfig } from "./config.js";

/** The configuration of such a run, with changes. */
export function tinyConfig(changes: Readonly<Record<string, unknown>> = {}): TrainConfig {
  return trainConfig(findEnvKind("household")).parse({
    env: { name: "household", rooms: 1, receptacles: 4, objects: 3, families: ["pick"] },
    prompt: { style: "compact", history: "all" },
    model: { start: "tiny", maxContext: 256 },
    // Test files run in parallel: more threads would only compete with one another.
    engine: { threads: 1 },
    warmStart: { episodes: 8, sft: { epochs: 1, batch: 8 } },
    updates: 3,
    groups: 2,
    groupSize: 3,
    stepLimit: 3,
    maxTokens: 6,
    minibatch: 64,
    objective: { entropy: 0 },
    paw: { loss: "cmae" },
    // Three more passes, with graphs of their own: a quarter of such a run.
    gradients: { every: 0 },
    evaluation: { every: 2, tasks: 2, splits: ["valid_seen"] },
    ...changes,
  });
}

/** Learning from one prepared update: mini-batches, one optimiser step each. */
import type { BackwardResult, Engine, TrainSequence } from "../engine/engine.js";
import type { Objective } from "../objectives/expression.js";
import { meanMetrics } from "../objectives/inputs.js";
import { createRandom } from "../random.js";
import type { MergedSequence } from "../update/merge.js";
import type { Update } from "../update/update.js";
import { minibatchWeights, type Normaliser } from "../update/weights.js";
import { mismatchOf, samplerMismatch } from "./mismatch.js";
import { learningRate, type OptimizerOptions } from "./schedule.js";

/** How an update is learnt. */
export interface LearnOptions {
  readonly objective: Objective;
  readonly normaliser: Normaliser;
  /** Steps of episodes per optimiser step. */
  readonly minibatch: number;
  readonly optimizer: OptimizerOptions;
  /** Optimiser steps taken before this update, and in the whole run, for the schedule. */
  readonly stepsBefore: number;
  readonly stepsInAll: number;
  readonly seed: number;
}

/** What an update taught, as means over its tokens and mini-batches. */
export interface Learnt {
  readonly metrics: Readonly<Record<string, number>>;
  readonly optimizerSteps: number;
  readonly tokens: number;
}

/** Learns the update's sequences in random order. Steps that continue one another are learnt in one pass. */
export async function learn(
  engine: Engine,
  update: Update,
  options: LearnOptions,
): Promise<Learnt> {
  const batches = minibatches(update, options);
  const sums: Record<string, number> = {};
  let tokens = 0;
  let gradNorm = 0;
  let rate = 0;
  let mismatch = samplerMismatch(update.sequences);
  for (const [index, batch] of batches.entries()) {
    const pass = await engine.forwardBackward(batch, options.objective);
    add(sums, pass);
    // Without another sampler only the first batch tells: it is learnt with the weights that sampled it.
    mismatch ??= mismatchOf(batch, pass);
    const step = options.stepsBefore + index;
    rate = learningRate(options.optimizer, step, options.stepsInAll);
    const result = await engine.optimStep({ ...options.optimizer, learningRate: rate });
    gradNorm += result.gradNorm / batches.length;
    tokens += batch.reduce((total, { ids }) => total + ids.length, 0);
  }
  // Each mini-batch's loss is a fair estimate of the update's, so the update's is their mean.
  const metrics = meanMetrics(sums);
  for (const name of Object.keys(metrics)) {
    if (name.endsWith(".loss") || name === "loss") metrics[name]! /= batches.length;
  }
  return {
    // The rate is that of the update's last step.
    metrics: { ...metrics, ...mismatch, gradNorm, learningRate: rate },
    optimizerSteps: batches.length,
    tokens,
  };
}

/** The update's sequences in random order and in mini-batches, with weights for a step of each one's own. */
export function minibatches(
  update: Update,
  { minibatch, normaliser, seed }: Pick<LearnOptions, "minibatch" | "normaliser" | "seed">,
): readonly (readonly TrainSequence[])[] {
  return minibatchWeights(cutBatches(shuffle(update.sequences, seed), minibatch), normaliser);
}

function add(sums: Record<string, number>, { loss, metrics }: BackwardResult): void {
  for (const [name, value] of Object.entries({ loss, ...metrics })) {
    sums[name] = (sums[name] ?? 0) + value;
  }
}

function shuffle<T>(items: readonly T[], seed: number): readonly T[] {
  return createRandom(seed).shuffle([...items]);
}

/** Batches of about as many steps each, never splitting a merged sequence. */
function cutBatches(
  sequences: readonly MergedSequence[],
  minibatch: number,
): readonly (readonly TrainSequence[])[] {
  const steps = sequences.reduce((total, sequence) => total + sequence.steps, 0);
  const count = Math.max(1, Math.round(steps / minibatch));
  const batches: TrainSequence[][] = [];
  let before = 0;
  for (const sequence of sequences) {
    const at = Math.min(count - 1, Math.floor((before * count) / steps));
    batches[at] ??= [];
    batches[at].push(sequence);
    before += sequence.steps;
  }
  return batches.filter((batch) => batch !== undefined);
}

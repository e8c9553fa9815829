/** Learning from one prepared update: mini-batches, one optimiser step each. */
import { mean } from "../advantages/statistics.js";
import type { BackwardResult, Engine, TrainSequence } from "../engine/engine.js";
import type { Objective } from "../objectives/expression.js";
import { meanMetrics } from "../objectives/inputs.js";
import { supervisedObjective } from "../objectives/supervised.js";
import { createRandom } from "../random.js";
import type { MergedSequence } from "../update/merge.js";
import type { Update } from "../update/update.js";
import { minibatchWeights, type PolicyAggregation } from "../update/weights.js";
import type { Corrections } from "./corrections.js";
import { mismatchOf, refuseMismatch, samplerMismatch } from "./mismatch.js";
import { withResponseRatios } from "./response-ratios.js";
import { learningRate, type OptimizerOptions } from "./schedule.js";
import { asMean } from "./sft.js";

/** How an update is learnt. */
export interface LearnOptions {
  readonly objective: Objective;
  readonly aggregation: PolicyAggregation;
  /** Episode steps per optimiser step. */
  readonly minibatch: number;
  readonly optimizer: OptimizerOptions;
  /** Optimiser steps taken before this update, and in the whole run, for the schedule. */
  readonly stepsBefore: number;
  readonly stepsInAll: number;
  readonly seed: number;
  /** What to imitate in addition to the update; divided among its optimiser steps. */
  readonly corrections?: Corrections;
  /**
   * Learn nothing if sampling and learning differ by more than this on average (default: no limit).
   */
  readonly mismatchLimit?: number;
  /**
   * Weights of an earlier update may have sampled the actions: how far their log-probabilities are
   * from those of the weights that learn says how far the policy has moved, and is no mismatch.
   */
  readonly stale?: boolean;
  /**
   * Called after every mini-batch, and within it by an engine that can tell, with the tokens learnt
   * so far and all of the update's.
   */
  readonly onBatch?: (tokens: number, all: number) => void;
}

/** What was learnt from an update, as means over its tokens and mini-batches. */
export interface Learnt {
  readonly metrics: Readonly<Record<string, number>>;
  readonly optimizerSteps: number;
  readonly tokens: number;
}

/**
 * Learns the update's sequences in random order. Steps that continue one another are learnt in one
 * pass.
 */
export async function learn(
  engine: Engine,
  update: Update,
  options: LearnOptions,
): Promise<Learnt> {
  const batches = minibatches(update, options);
  const imitated = correctionBatches(options.corrections, batches.length);
  const sums: Record<string, number> = {};
  let tokens = 0;
  let gradNorm = 0;
  const imitation: number[] = [];
  let rate = 0;
  const drawn = samplerMismatch(update.sequences);
  let mismatch = options.stale === true ? undefined : drawn;
  const lengthOf = (batch: (typeof batches)[number]): number =>
    batch.reduce((total, { ids }) => total + ids.length, 0);
  const allTokens = batches.reduce((total, batch) => total + lengthOf(batch), 0);
  options.onBatch?.(0, allTokens);
  for (const [index, batch] of batches.entries()) {
    const most = lengthOf(batch);
    const ready = await withResponseRatios(engine, batch, options.objective, index === 0);
    const pass = await engine.forwardBackward(ready, options.objective, (done) =>
      options.onBatch?.(tokens + Math.min(done, most), allTokens),
    );
    add(sums, pass);
    // Without a separate sampler only the first batch counts: it is learnt with the weights that
    // sampled it.
    mismatch ??= mismatchOf(batch, pass);
    if (index === 0 && options.mismatchLimit !== undefined)
      refuseMismatch(mismatch, options.mismatchLimit, engine.capabilities);
    const shown = imitated[index] ?? [];
    if (shown.length > 0) {
      const { loss } = await engine.forwardBackward(shown, supervisedObjective);
      imitation.push(loss);
    }
    const step = options.stepsBefore + index;
    rate = learningRate(options.optimizer, step, options.stepsInAll);
    const result = await engine.optimStep({ ...options.optimizer, learningRate: rate });
    gradNorm += result.gradNorm / batches.length;
    tokens += most;
    options.onBatch?.(tokens, allTokens);
  }
  // Each mini-batch's loss is an unbiased estimate of the update's, so the update's is their mean.
  const metrics = meanMetrics(sums);
  for (const name of Object.keys(metrics)) {
    if (name.endsWith(".loss") || name === "loss") metrics[name]! /= batches.length;
  }
  return {
    metrics: {
      ...metrics,
      ...mismatch,
      ...(options.stale === true && { "policy.drift": drawn?.["mismatch.mean"] ?? 0 }),
      gradNorm,
      // From the last optimiser step.
      learningRate: rate,
      ...correctionMetrics(options.corrections, imitation),
    },
    optimizerSteps: batches.length,
    tokens,
  };
}

/**
 * The update's sequences in random order, as mini-batches with weights for one optimiser step each.
 */
export function minibatches(
  update: Update,
  { minibatch, aggregation, seed }: Pick<LearnOptions, "minibatch" | "aggregation" | "seed">,
): readonly (readonly TrainSequence[])[] {
  return minibatchWeights(cutBatches(shuffle(update.sequences, seed), minibatch), aggregation);
}

/**
 * The corrections of each optimiser step; the weights of each part sum to the imitation loss's
 * weight.
 */
function correctionBatches(
  corrections: Corrections | undefined,
  count: number,
): readonly (readonly TrainSequence[])[] {
  if (corrections === undefined) return [];
  const { sequences, weight } = corrections;
  return Array.from({ length: count }, (_, batch) =>
    asMean(
      sequences.filter((_, i) => i % count === batch),
      weight,
    ),
  );
}

function correctionMetrics(
  corrections: Corrections | undefined,
  losses: readonly number[],
): Readonly<Record<string, number>> {
  if (corrections === undefined) return {};
  const { episodes, weight } = corrections;
  return { "corrections.episodes": episodes, "corrections.loss": mean(losses) / weight };
}

function add(sums: Record<string, number>, { loss, metrics }: BackwardResult): void {
  for (const [name, value] of Object.entries({ loss, ...metrics })) {
    sums[name] = (sums[name] ?? 0) + value;
  }
}

function shuffle<T>(items: readonly T[], seed: number): readonly T[] {
  return createRandom(seed).shuffle([...items]);
}

/** Batches of roughly equal numbers of steps, never splitting a merged sequence. */
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

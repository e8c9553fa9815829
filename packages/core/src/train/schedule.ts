/** Learning rates over the course of training. */
import { z } from "zod";
import { EngineError } from "../engine/engine.js";

/**
 * Settings of the optimiser: AdamW with a warm-up, then constant or decaying to 0 along a cosine.
 */
export const optimizerOptions = z
  .strictObject({
    learningRate: z.number().gt(0).default(1e-4).describe("AdamW learning rate"),
    schedule: z
      .enum(["constant", "linear", "cosine"])
      .default("constant")
      .describe("learning-rate schedule after the warm-up"),
    warmup: z.int().min(0).default(10).describe("optimiser steps of linear learning-rate warm-up"),
    weightDecay: z.number().min(0).default(0.01).describe("decoupled weight decay"),
    beta1: z.number().min(0).lt(1).default(0.9).describe("Adam β₁"),
    beta2: z.number().min(0).lt(1).default(0.999).describe("Adam β₂"),
    gradClipNorm: z.number().gt(0).default(1).describe("clip the gradient norm to this"),
  })
  .prefault({});

/** Settings of the optimiser. */
export type OptimizerOptions = z.output<typeof optimizerOptions>;

/** The learning rate of optimiser step `step` (from 0) of `total`. */
export function learningRate(options: OptimizerOptions, step: number, total: number): number {
  const { learningRate: peak, warmup, schedule } = options;
  const totalSteps = Math.max(total, warmup + 1);
  return learningRateAt({ peak, warmupSteps: warmup, decay: schedule, totalSteps }, step);
}

/** How the learning rate changes from one optimiser step to the next. */
export interface LearningRateSchedule {
  readonly peak: number;
  /** Optimiser steps over which it rises from 0 to the peak. Default 0. */
  readonly warmupSteps?: number;
  /** The shape after the warm-up. Default `constant`. */
  readonly decay?: "constant" | "linear" | "cosine";
  /** Optimiser steps in the whole run, after which a decaying rate has reached its end. */
  readonly totalSteps?: number;
  /** Final rate as a fraction of the peak, if it decays. Default 0. */
  readonly endShare?: number;
}

/** The learning rate of an optimiser step, counted from 0. */
export function learningRateAt(schedule: LearningRateSchedule, step: number): number {
  const { peak, warmupSteps = 0, decay = "constant", totalSteps, endShare = 0 } = schedule;
  // The first optimiser step already learns; the last one of the warm-up reaches the peak.
  if (step < warmupSteps) return (peak * (step + 1)) / warmupSteps;
  if (decay === "constant") return peak;
  if (totalSteps === undefined || totalSteps <= warmupSteps)
    throw new EngineError(
      `a ${decay} learning rate needs totalSteps greater than its ${warmupSteps} warm-up steps, but it is ${totalSteps}`,
    );
  const done = Math.min(1, (step - warmupSteps) / (totalSteps - warmupSteps));
  const left = decay === "linear" ? 1 - done : (1 + Math.cos(Math.PI * done)) / 2;
  return peak * (endShare + (1 - endShare) * left);
}

/** Learning rates over the course of training. */
import { z } from "zod";
import { learningRateAt } from "../engine/schedule.js";

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

/** Learning rates over a run: a linear warm-up, then constant, linear or cosine. */
import { EngineError } from "./engine.js";

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

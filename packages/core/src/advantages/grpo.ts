/**
 * GRPO: a step's score against the scores of its group (Shao et al. 2024, arXiv 2402.03300, §4.1.2;
 * the episode-level term of GiGPO, arXiv 2505.10978, GiGPO eq. 3).
 *
 *   A_i = (s_i − mean(s)) / (std(s) + 1e-6)        `mean-std`, std with denominator n − 1
 *   A_i =  s_i − mean(s)                           `mean`, as in Dr. GRPO (arXiv 2503.20783)
 *
 * A group with one value has nothing to compare with: A = s.
 */
import { z } from "zod";
import { commonSettings, groupEstimator } from "./estimator.js";
import {
  mapSteps,
  type Normalisation,
  normaliser,
  normSetting,
  perSetting,
  type StatisticsUnit,
  type StepTable,
  statisticsOver,
} from "./statistics.js";

/** Advantages of one group's steps: episodes × steps. */
export function grpo(
  scores: StepTable,
  per: StatisticsUnit = "step",
  norm: Normalisation = "mean-std",
): StepTable {
  const values = statisticsOver(scores, per);
  return values.length === 1 ? scores : mapSteps(scores, normaliser(values, norm));
}

export const grpoEstimator = groupEstimator(
  z.strictObject({
    name: z.literal("grpo").describe("advantage estimator"),
    per: perSetting,
    norm: normSetting,
    ...commonSettings,
  }),
  (scores, { per, norm }) => grpo(scores, per, norm),
);

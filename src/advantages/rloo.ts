/**
 * RLOO: a step's score against the mean of all others of its group, left one out (Kool et al. 2019;
 * Ahmadian et al. 2024, arXiv 2402.14740).
 *
 *   A_i = s_i − (1/(n−1)) Σ_{j≠i} s_j = (s_i − mean(s)) · n/(n−1)
 *
 * A group with one value has no others: A = s.
 */
import {
  mapSteps,
  mean,
  type StatisticsUnit,
  type StepTable,
  statisticsOver,
} from "./statistics.js";

/** Advantages of one group's steps: episodes × steps. */
export function rloo(scores: StepTable, per: StatisticsUnit = "step"): StepTable {
  const values = statisticsOver(scores, per);
  if (values.length === 1) return scores;
  const center = mean(values);
  const stretch = values.length / (values.length - 1);
  return mapSteps(scores, (s) => (s - center) * stretch);
}

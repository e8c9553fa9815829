/**
 * RLOO: a step's score against what the others of its group earned, leaving one out (Kool et al.
 * 2019; Ahmadian et al. 2024, arXiv 2402.14740).
 *
 *   `other-episodes`   A_it = s_it − mean over the other episodes j ≠ i of mean_t(s_jt)
 *   `step`, `episode`  A_i  = s_i − (1/(n−1)) Σ_{j≠i} s_j = (s_i − mean(s)) · n/(n−1)
 *
 * An episode's steps share its return, so the whole episode must be left out: only then is the
 * baseline independent of what the step did, and the estimate unbiased. `step` is what the
 * reference implementation of PaW does: it leaves out one step, and the episode's other steps stay
 * in the baseline. A value without others has no baseline: A = s.
 */
import { z } from "zod";
import { commonSettings, groupEstimator } from "./estimator.js";
import {
  mapSteps,
  mean,
  type StatisticsUnit,
  type StepTable,
  statisticsOver,
} from "./statistics.js";

/** What is left out of a step's baseline: its whole episode, or a single value. */
export type LeftOut = "other-episodes" | StatisticsUnit;

/** Advantages of one group's steps: episodes × steps. */
export function rloo(scores: StepTable, per: LeftOut = "other-episodes"): StepTable {
  if (per === "other-episodes") return againstOthers(scores);
  const values = statisticsOver(scores, per);
  if (values.length === 1) return scores;
  const center = mean(values);
  const stretch = values.length / (values.length - 1);
  return mapSteps(scores, (s) => (s - center) * stretch);
}

function againstOthers(scores: StepTable): StepTable {
  return scores.map((steps, e) => {
    // Without others the mean is 0, and the score is unchanged.
    const baseline = mean(statisticsOver(scores.toSpliced(e, 1), "episode"));
    return steps.map((s) => s - baseline);
  });
}

export const rlooEstimator = groupEstimator(
  z.strictObject({
    name: z.literal("rloo"),
    per: z
      .enum(["other-episodes", "step", "episode"])
      .default("other-episodes")
      .describe(
        "baseline: the mean of the other episodes, or n/(n−1) times the distance from the group mean over steps or episodes",
      ),
    ...commonSettings,
  }),
  (scores, { per }) => rloo(scores, per),
);

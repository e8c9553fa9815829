/**
 * Step advantages by looking ahead, for `bench lookahead`: GRPO's, and how much better the state is
 * that an action led to than those that other samples of the same state would have led to.
 *
 *   A_t = A_t(GRPO) + δ_t / √mean(δ²)      over all steps of the update
 *   δ_t = V(s' of the action) − mean over the samples of V(s' of each)
 *
 * V is in the recorded candidates' `score` (`lookahead-world.ts`).
 */
import type { Estimator, ScoredGroup } from "@pawl/core/advantages/estimator.js";
import { commonSettings } from "@pawl/core/advantages/estimator.js";
import { gae } from "@pawl/core/advantages/gae.js";
import { grpo } from "@pawl/core/advantages/grpo.js";
import { penalties, scores } from "@pawl/core/advantages/scores.js";
import type { StepTable } from "@pawl/core/advantages/statistics.js";
import type { Step } from "@pawl/core/rollout/episode.js";
import { z } from "zod";

/** Actions that are compared in each state. */
export const SIBLINGS = 8;

/** How much better than its siblings a step's action was. */
function ahead({ candidates = [] }: Step): number {
  const chosen = candidates.find((one) => one.chosen);
  if (chosen === undefined) return 0;
  const votes = candidates.reduce((sum, one) => sum + one.votes, 0);
  const mean = candidates.reduce((sum, one) => sum + (one.votes * one.score) / votes, 0);
  return chosen.score - mean;
}

const nameOf = <const N extends string>(name: N) =>
  z.strictObject({ name: z.literal(name), ...commonSettings });

function advantagesOf(
  groups: readonly ScoredGroup[],
  options: z.output<ReturnType<typeof nameOf<string>>>,
): readonly StepTable[] {
  const deltas = groups.map(({ group, episodes }) =>
    group.episodes.map(({ steps }, e) => steps.slice(0, episodes[e]!.rewards.length).map(ahead)),
  );
  const all = deltas.flat(2);
  const size = Math.sqrt(all.reduce((sum, one) => sum + one * one, 0) / all.length);
  return groups.map(({ episodes }, g) => {
    const fines = penalties(episodes, options.penaltyPlace === "after" ? options.penalty : 0);
    return grpo(scores(episodes, options)).map((steps, e) =>
      steps.map((one, t) => one + (size > 0 ? deltas[g]![e]![t]! / size : 0) - fines[e]![t]!),
    );
  });
}

/** With values of the expert: the steps that it would still need. */
export const expertLookahead: Estimator<ReturnType<typeof nameOf<"lookahead-expert">>> = {
  settings: nameOf("lookahead-expert"),
  usesCritic: false,
  estimate: (groups, options) => ({ advantages: advantagesOf(groups, options) }),
};

/** With values of the policy's own head, which learns the returns. */
export const criticLookahead: Estimator<ReturnType<typeof nameOf<"lookahead-critic">>> = {
  settings: nameOf("lookahead-critic"),
  usesCritic: true,
  estimate: (groups, options, values) => ({
    advantages: advantagesOf(groups, options),
    returns: groups.map(({ episodes }, g) =>
      scores(episodes, options).map(
        (earned, e) =>
          gae(earned, values![g]![e]!, { gamma: 1, lambda: 1, scope: "response" }).returns,
      ),
    ),
  }),
};

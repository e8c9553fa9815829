/**
 * PPO's advantages: GAE over a critic's values (`gae.ts`), whitened over the whole update (Schulman
 * et al. 2017, arXiv 1707.06347). Nothing is compared within a group, so every episode is its own
 * group.
 */
import { z } from "zod";
import { commonSettings, type Estimator, GAMMA_HELP } from "./estimator.js";
import { gae, whitener } from "./gae.js";
import { alongTime, penalties, scores, subtractInside } from "./scores.js";

const settings = z.strictObject({
  name: z.literal("ppo"),
  ...commonSettings,
  gamma: z.number().min(0).max(1).default(1).describe(GAMMA_HELP),
  lambda: z.number().min(0).max(1).default(1).describe("λ of GAE"),
  scope: z
    .enum(["response", "episode"])
    .default("response")
    .describe("run GAE over a single response, or across all turns of the episode"),
});

export const ppoEstimator: Estimator<typeof settings> = {
  settings,
  usesCritic: true,
  estimate(groups, options, values) {
    if (values === undefined)
      throw new Error(
        "PPO needs the critic's value of every action token; ask the engine for values and pass them on",
      );
    const results = groups.map(({ episodes }, g) => {
      const table = scores(episodes, options);
      const fines = penalties(episodes, options.penalty);
      return episodes.map((episode, e) => {
        const tokens = values[g]?.[e] ?? [];
        if (tokens.length !== episode.rewards.length)
          throw new Error(
            `episode ${e} of group ${g} has ${episode.rewards.length} steps, but the critic's values are for ${tokens.length}`,
          );
        const earned =
          options.scope === "response"
            ? table[e]!
            : subtractInside(episode.rewards, fines[e]!, options);
        // Advantages and targets of a step go together, so that both are listed as the steps are.
        const steps = earned.map((reward, t) => ({ reward, tokens: tokens[t]! }));
        const computed = alongTime(episode, steps, (played) => {
          const { advantages, returns } = gae(
            played.map(({ reward }) => reward),
            played.map((step) => step.tokens),
            options,
          );
          return advantages.map((one, t) => ({ advantages: one, returns: returns[t]! }));
        });
        return {
          advantages: computed.map(({ advantages }) => advantages),
          returns: computed.map(({ returns }) => returns),
        };
      });
    });
    const whiten = whitener(results.flat().flatMap((episode) => episode.advantages.flat()));
    return {
      advantages: results.map((episodes, g) => {
        const penalty = options.penaltyPlace === "after" ? options.penalty : 0;
        const fines = penalties(groups[g]!.episodes, penalty);
        return episodes.map(({ advantages }, e) =>
          advantages.map((tokens, t) => tokens.map((a) => whiten(a) - fines[e]![t]!)),
        );
      }),
      returns: results.map((episodes) => episodes.map((episode) => episode.returns)),
    };
  },
};

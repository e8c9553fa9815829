/** Advantages: how much better each step was than what was to be expected, by the estimator of choice. */
import { z } from "zod";
import type { Episode, Group } from "../rollout/episode.js";
import { observationBefore } from "./anchors.js";
import { gae, type TokenTable, whitener } from "./gae.js";
import { discountedReturns, gigpo } from "./gigpo.js";
import { grpo } from "./grpo.js";
import { rloo } from "./rloo.js";
import { penalties, type ScoredEpisode, scores, subtractInside } from "./scores.js";
import type { StepTable } from "./statistics.js";

const common = {
  penalty: z.number().min(0).default(0.1).describe("what an invalid action costs; 0 is nothing"),
  penaltyPlace: z
    .enum(["inside", "after"])
    .default("inside")
    .describe("subtract the penalty from the score (inside), or after normalisation"),
};
const per = z
  .enum(["step", "episode"])
  .default("step")
  .describe(
    "group statistics over all steps, or over one value per episode; rloo: the other episodes' mean (its default), or n/(n−1) times the distance from the group's",
  );
// Help lists settings that estimators share once, so it must name both defaults.
const gammaHelp = "discount of later rewards; 0.95 with gigpo, 1 with ppo";

/** Settings of the advantage estimators: types, defaults, help and errors come from here. */
export const advantageOptions = z
  .discriminatedUnion("name", [
    z.strictObject({ name: z.literal("grpo").describe("advantage estimator"), per, ...common }),
    z.strictObject({
      name: z.literal("rloo"),
      per: z
        .enum(["other-episodes", "step", "episode"])
        .default("other-episodes")
        .describe("the other episodes' mean, or n/(n−1) times the distance from the group's mean"),
      ...common,
    }),
    z.strictObject({
      name: z.literal("gigpo"),
      per,
      ...common,
      gamma: z.number().min(0).max(1).default(0.95).describe(gammaHelp),
      stepWeight: z.number().min(0).default(1).describe("ω: weight of the step-level term"),
      norm: z
        .enum(["mean-std", "mean"])
        .default("mean-std")
        .describe("divide by the spread, or only subtract the mean"),
      similarity: z
        .number()
        .gt(0)
        .max(1)
        .default(1)
        .describe("observations at least this similar are one anchor; 1: equal ones only"),
    }),
    z.strictObject({
      name: z.literal("ppo"),
      ...common,
      gamma: z.number().min(0).max(1).default(1).describe(gammaHelp),
      lambda: z.number().min(0).max(1).default(1).describe("λ of GAE"),
      scope: z
        .enum(["response", "episode"])
        .default("response")
        .describe("look ahead to the end of the response, or across the turns of the episode"),
    }),
  ])
  .prefault({ name: "grpo" });

export type AdvantageOptions = z.output<typeof advantageOptions>;

/** One number per action token: groups × episodes × steps × tokens. */
export type TokenNumbers = readonly (readonly TokenTable[])[];

/** Advantages of all steps. A broken episode keeps its place, with no steps. */
export interface Advantages {
  /** Groups × episodes × steps: one number for all tokens of the action, or one for each. */
  readonly advantages: readonly (readonly (readonly (number | readonly number[])[])[])[];
  /** What the critic should have said of each action token; with PPO only. */
  readonly returns?: TokenNumbers;
}

/** The advantages of all groups; PPO needs the critic's value of each action token. */
export function computeAdvantages(
  groups: readonly Group[],
  options: AdvantageOptions,
  values?: TokenNumbers,
): Advantages {
  const whole = groups.map((group) => group.episodes.map(scored));
  if (options.name === "ppo") return ppo(whole, options, values);
  return {
    advantages: groups.map((group, g) => {
      const episodes = whole[g]!;
      const table = groupAdvantages(group, episodes, options);
      return options.penaltyPlace === "inside"
        ? table
        : subtract(table, penalties(episodes, options.penalty));
    }),
  };
}

function groupAdvantages(
  group: Group,
  episodes: readonly ScoredEpisode[],
  options: Exclude<AdvantageOptions, { name: "ppo" }>,
): StepTable {
  const table = scores(episodes, options);
  switch (options.name) {
    case "grpo":
      return grpo(table, options.per);
    case "rloo":
      return rloo(table, options.per);
    case "gigpo": {
      const fines = penalties(episodes, options.penalty);
      const returns = episodes.map(({ rewards }, e) =>
        subtractInside(discountedReturns(rewards, options.gamma), fines[e]!, options),
      );
      return gigpo({ scores: table, returns, anchors: group.episodes.map(anchorsOf) }, options);
    }
  }
}

function ppo(
  groups: readonly (readonly ScoredEpisode[])[],
  options: Extract<AdvantageOptions, { name: "ppo" }>,
  values: TokenNumbers | undefined,
): Advantages {
  if (values === undefined)
    throw new Error(
      "PPO needs the critic's value of every action token; ask the engine for values and pass them on",
    );
  const results = groups.map((episodes, g) => {
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
      return gae(earned, tokens, options);
    });
  });
  const whiten = whitener(results.flat().flatMap((episode) => episode.advantages.flat()));
  return {
    advantages: results.map((episodes, g) => {
      const fines = penalties(groups[g]!, options.penaltyPlace === "after" ? options.penalty : 0);
      return episodes.map(({ advantages }, e) =>
        advantages.map((tokens, t) => tokens.map((a) => whiten(a) - fines[e]![t]!)),
      );
    }),
    returns: results.map((episodes) => episodes.map((episode) => episode.returns)),
  };
}

const NO_STEPS: ScoredEpisode = { return: 0, rewards: [], valid: [] };

/** What counts of an episode; nothing of a broken one, which says nothing about the policy. */
function scored(episode: Episode): ScoredEpisode {
  if (episode.stop === "broken") return NO_STEPS;
  const rewards = episode.steps.map((step) => step.reward);
  const odd = rewards.findIndex((reward) => !Number.isFinite(reward));
  if (odd >= 0)
    throw new Error(
      `the reward of step ${odd} of attempt ${episode.attempt} at task ${episode.task.id} is ${rewards[odd]}; expected a finite number: mend the environment, or let it throw, so that the episode counts as broken`,
    );
  return {
    return: episode.return,
    rewards,
    valid: episode.steps.map((step) => step.valid),
  };
}

function anchorsOf(episode: Episode): readonly string[] {
  if (episode.stop === "broken") return [];
  return episode.steps.map((_, t) => observationBefore(episode, t));
}

function subtract(table: StepTable, other: StepTable): StepTable {
  return table.map((steps, e) => steps.map((x, t) => x - other[e]![t]!));
}

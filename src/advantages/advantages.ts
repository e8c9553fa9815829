/** Advantages: how much better each step was than expected, by the chosen estimator. */
import { z } from "zod";
import type { Episode, Group } from "../rollout/episode.js";
import type { Advantages, Estimator, TokenNumbers } from "./estimator.js";
import { estimators } from "./estimators.js";
import type { ScoredEpisode } from "./scores.js";

export type { Advantages, TokenNumbers } from "./estimator.js";

type Schemas<E> = { -readonly [K in keyof E]: E[K] extends Estimator<infer S> ? S : never };

const nameOf = ({ settings }: Pick<Estimator, "settings">): string => settings.shape.name.value;

/** The names of the estimators. */
export const estimatorNames = estimators.map(nameOf) as readonly AdvantageOptions["name"][];

/** Settings of the advantage estimators: types, defaults, help and errors come from here. */
export const advantageOptions = z
  .discriminatedUnion(
    "name",
    estimators.map(({ settings }) => settings) as unknown as Schemas<typeof estimators>,
  )
  .prefault({ name: estimators[0].settings.shape.name.value });

export type AdvantageOptions = z.output<typeof advantageOptions>;

/**
 * The advantages of all groups; an estimator with a critic needs its value for each action token.
 */
export function computeAdvantages(
  groups: readonly Group[],
  options: AdvantageOptions,
  values?: TokenNumbers,
): Advantages {
  const whole = groups.map((group) => ({ group, episodes: group.episodes.map(scored) }));
  return estimatorOf(options).estimate(whole, options, values);
}

/** Whether this estimator needs a critic's values; every episode is then its own group. */
export function usesCritic(options: Pick<AdvantageOptions, "name">): boolean {
  return estimatorOf(options).usesCritic;
}

/** The estimator that the settings name; its own schema has parsed them. */
function estimatorOf({ name }: Pick<AdvantageOptions, "name">): Estimator {
  return estimators.find((estimator) => nameOf(estimator) === name)! as unknown as Estimator;
}

const NO_STEPS: ScoredEpisode = { return: 0, rewards: [], valid: [] };

/**
 * The part of an episode that counts; nothing of a broken one, which says nothing about the policy.
 */
function scored(episode: Episode): ScoredEpisode {
  if (episode.stop === "broken") return NO_STEPS;
  const rewards = episode.steps.map((step) => step.reward);
  const odd = rewards.findIndex((reward) => !Number.isFinite(reward));
  if (odd >= 0)
    throw new Error(
      `the reward of step ${odd} of attempt ${episode.attempt} at task ${episode.task.id} is ${rewards[odd]}; expected a finite number: fix the environment, or let it throw, so that the episode counts as broken`,
    );
  return {
    return: episode.return,
    rewards,
    valid: episode.steps.map((step) => step.valid),
  };
}

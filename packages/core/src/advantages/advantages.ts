/** Advantages: how much better each step was than expected, by the chosen estimator. */
import { z } from "zod";
import { addedParts, addPart, schemaOfParts } from "../added-parts.js";
import { UserError } from "../errors.js";
import { type Episode, type Group, inTime } from "../rollout/episode.js";
import type { Advantages, Estimator, ScoredGroup, TokenNumbers } from "./estimator.js";
import { gigpoEstimator } from "./gigpo.js";
import { grpoEstimator } from "./grpo.js";
import { ppoEstimator } from "./ppo.js";
import { rlooEstimator } from "./rloo.js";
import type { PenaltyOptions, ScoredEpisode } from "./scores.js";
import { treeEstimator } from "./tree.js";

/**
 * The estimators, in the order that help lists them. To add one, write a file beside this one and
 * add a line here (CONTRIBUTING.md).
 */
const estimators = [
  grpoEstimator, // the default
  rlooEstimator,
  gigpoEstimator,
  treeEstimator,
  ppoEstimator,
] as const;

export type { Advantages, TokenNumbers } from "./estimator.js";

type Schemas<E> = { -readonly [K in keyof E]: E[K] extends Estimator<infer S> ? S : never };

/** The built-in estimators and, after them, those of plugins. */
const registered = (): readonly Estimator[] => [
  ...(estimators as unknown as readonly Estimator[]),
  ...addedParts<Estimator>("estimators").values(),
];

const nameOf = ({ settings }: Pick<Estimator, "settings">): string => settings.shape.name.value;

/** The names of the estimators. */
export function estimatorNames(): readonly AdvantageOptions["name"][] {
  return registered().map(nameOf) as readonly AdvantageOptions["name"][];
}

/** Settings of the advantage estimators: types, defaults, help and errors come from here. */
export const advantageOptions = schemaOfParts("estimators", () =>
  z
    .discriminatedUnion(
      "name",
      registered().map(({ settings }) => settings) as unknown as Schemas<typeof estimators>,
    )
    .prefault({ name: estimators[0].settings.shape.name.value }),
);

export type AdvantageOptions = z.output<ReturnType<typeof advantageOptions>>;

/** The same as a caller gives them: what is left out has its default. */
export type AdvantageSettings = z.input<ReturnType<typeof advantageOptions>>;

/** Adds an estimator, so that configurations can name it. */
export function registerEstimator(estimator: Estimator): void {
  const { settings, estimate } = estimator;
  const name: unknown = settings?.shape?.name?.value;
  if (typeof name !== "string" || typeof estimate !== "function")
    throw new UserError(
      "an estimator consists of settings, a zod object whose name is a z.literal, and estimate(): see groupEstimator",
    );
  if (registered().some((other) => nameOf(other) === name))
    throw new UserError(
      `there is an advantage estimator "${name}" already; choose another name than ${estimatorNames().join(", ")}`,
    );
  addPart("estimators", name, estimator);
}

/**
 * The advantages of all groups; an estimator with a critic needs its value for each action token.
 */
export function computeAdvantages(
  groups: readonly Group[],
  settings: AdvantageSettings,
  values?: TokenNumbers,
): Advantages {
  const options = advantageOptions().parse(settings);
  const whole = groups.map(withoutHints).map((group) => ({
    group,
    episodes: group.episodes.map((episode) => scored(episode, options)),
  }));
  const computed = estimatorOf(options).estimate(whole, options, values);
  refuseOdd(whole, computed, options.name);
  return withHints(groups, computed);
}

/** A group as if its episodes had begun where their hints ended: a teacher's steps say nothing. */
function withoutHints(group: Group): Group {
  if (group.episodes.every(({ hint = 0 }) => hint === 0)) return group;
  return {
    ...group,
    episodes: group.episodes.map(({ hint = 0, branch, ...episode }) => ({
      ...episode,
      ...(branch && { branch: { ...branch, step: branch.step - hint } }),
      firstObservation: episode.steps[hint - 1]?.observation ?? episode.firstObservation,
      steps: episode.steps.slice(hint),
    })),
  };
}

/** The same numbers, listed by all steps: those of a hint are 0. */
function withHints(groups: readonly Group[], { advantages, returns }: Advantages): Advantages {
  const listed = <T>(table: readonly (readonly (readonly T[])[])[], nothing: T) =>
    table.map((episodes, g) =>
      episodes.map((steps, e): readonly T[] => {
        const { hint = 0, stop } = groups[g]!.episodes[e]!;
        if (hint === 0 || stop === "broken") return steps;
        return [...new Array<T>(hint).fill(nothing), ...steps];
      }),
    );
  return {
    advantages: listed(advantages, 0),
    ...(returns !== undefined && { returns: listed(returns, []) }),
  };
}

/** Rejects advantages that do not fit the episodes or are not numbers. */
function refuseOdd(
  groups: readonly ScoredGroup[],
  { advantages }: Advantages,
  estimator: string,
): void {
  for (const [g, { episodes }] of groups.entries())
    for (const [e, { rewards }] of episodes.entries()) {
      const steps = advantages[g]?.[e];
      if (steps?.length !== rewards.length)
        throw new UserError(
          `the advantage estimator ${estimator} gave ${steps?.length ?? "no"} advantages for episode ${e} of group ${g}, which has ${rewards.length} steps that count`,
        );
      const odd = steps.flat().find((advantage) => !Number.isFinite(advantage));
      if (odd !== undefined)
        throw new UserError(
          `the advantage estimator ${estimator} gave ${odd} for a step of episode ${e} of group ${g}; expected a finite number`,
        );
    }
}

/** Whether this estimator needs a critic's values; every episode is then its own group. */
export function usesCritic(options: Pick<AdvantageOptions, "name">): boolean {
  return estimatorOf(options).usesCritic;
}

/** The estimator that the settings name; its own schema has parsed them. */
function estimatorOf({ name }: Pick<AdvantageOptions, "name">): Estimator {
  return registered().find((estimator) => nameOf(estimator) === name)!;
}

const NO_STEPS: ScoredEpisode = { return: 0, rewards: [], fined: [] };

/**
 * The part of an episode that counts; nothing of a broken one, which says nothing about the policy.
 */
function scored(episode: Episode, { penaltyOn }: Pick<PenaltyOptions, "penaltyOn">): ScoredEpisode {
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
    ...(episode.steps.some(({ time }) => time !== undefined) && { order: inTime(episode.steps) }),
    fined: episode.steps.map(({ wellFormed, valid }) =>
      penaltyOn === "malformed" ? !wellFormed : !valid,
    ),
  };
}

/** Rounding of means leaves a little even where all rewards are equal. */
const NOTHING = 1e-9;

/** Fraction of the groups in which every action was exactly as good as expected: of no use to RL. */
export function equalGroups({ advantages }: Advantages): number {
  const isNothing = (one: number | readonly number[]): boolean =>
    typeof one === "number" ? Math.abs(one) < NOTHING : one.every(isNothing);
  // A group whose episodes all broke says nothing either way.
  const played = advantages.filter((group) => group.some((episode) => episode.length > 0));
  const equal = played.filter((group) => group.every((episode) => episode.every(isNothing)));
  return equal.length / played.length;
}

/**
 * An advantage estimator: its settings, and how advantages follow from groups of episodes. One file
 * per estimator; `advantages.ts` lists them.
 */
import { z } from "zod";
import type { Group } from "../rollout/episode.js";
import type { TokenTable } from "./gae.js";
import { type PenaltyOptions, penalties, type ScoredEpisode, scores } from "./scores.js";
import type { StepTable } from "./statistics.js";

/** One number per action token: groups × episodes × steps × tokens. */
export type TokenNumbers = readonly (readonly TokenTable[])[];

/** Advantages of all steps. A broken episode keeps its place, without steps. */
export interface Advantages {
  /** Groups × episodes × steps: one number for all tokens of the action, or one for each. */
  readonly advantages: readonly (readonly (readonly (number | readonly number[])[])[])[];
  /** The critic's target for each action token; only with a critic. */
  readonly returns?: TokenNumbers;
}

/** A group with the parts of its episodes that count; none of a broken one. */
export interface ScoredGroup {
  readonly group: Group;
  readonly episodes: readonly ScoredEpisode[];
}

/** Settings that every estimator has. */
export const commonSettings = {
  penalty: z.number().min(0).default(0.1).describe("penalty for an invalid action (0: none)"),
  penaltyPlace: z
    .enum(["inside", "after"])
    .default("inside")
    .describe("subtract the penalty from the return before normalisation (inside), or after it"),
  penaltyOn: z
    .enum(["malformed", "invalid"])
    .default("invalid")
    .describe("malformed responses only, or also actions that the environment refuses (invalid)"),
};

/**
 * Help for the discount. Help shows a setting that estimators share once, so it must name both
 * defaults.
 */
export const GAMMA_HELP = "γ: discount factor (default 0.95 with gigpo, 1 with ppo)";

/** The settings of an estimator: its name, the common ones and its own. */
export type EstimatorSettings = z.ZodObject<{ readonly name: z.ZodLiteral<string> }> &
  z.ZodType<PenaltyOptions>;

/** An estimator. */
export interface Estimator<S extends EstimatorSettings = EstimatorSettings> {
  readonly settings: S;
  /**
   * Whether it needs a critic's value for every action token; every episode is then its own group.
   */
  readonly usesCritic: boolean;
  /** The advantages of all groups. */
  estimate(
    groups: readonly ScoredGroup[],
    options: z.output<S>,
    values: TokenNumbers | undefined,
  ): Advantages;
}

/**
 * An estimator that looks at one group at a time: from the scores of its steps, episodes × steps,
 * to their advantages. A penalty after normalisation is subtracted here.
 */
export function groupEstimator<S extends EstimatorSettings>(
  settings: S,
  estimateGroup: (scores: StepTable, options: z.output<S>, group: ScoredGroup) => StepTable,
): Estimator<S> {
  return {
    settings,
    usesCritic: false,
    estimate: (groups, options) => ({
      advantages: groups.map((group) => {
        const table = estimateGroup(scores(group.episodes, options), options, group);
        if (options.penaltyPlace === "inside") return table;
        const fines = penalties(group.episodes, options.penalty);
        return table.map((steps, e) => steps.map((x, t) => x - fines[e]![t]!));
      }),
    }),
  };
}

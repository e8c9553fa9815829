/** Summary statistics of an update. */
import { mean } from "../advantages/statistics.js";
import type { Group } from "../rollout/episode.js";
import { teacherDistance } from "./distillation.js";
import type { TargetedTransition } from "./transitions.js";

/** Statistics of an update, for its metrics. */
export interface UpdateSummary {
  readonly groups: number;
  readonly episodes: number;
  readonly brokenEpisodes: number;
  readonly actionTokens: number;
  /** Observation tokens that are targets. */
  readonly observationTokens: number;
  /** Transitions in the pool of selection: with an observation. */
  readonly pool: number;
  /** Fraction of the pool that was selected. */
  readonly selectedShare: number;
  readonly meanActionEntropy: number;
  /** How far the policy is from its teacher; undefined without one. */
  readonly teacherDistance: number | undefined;
  /** The adaptive coefficient, mean over groups. */
  readonly meanLambda: number;
  /** Sequences whose observations did not fit and were truncated. */
  readonly cut: number;
}

/** The statistics of the transitions that are learnt. */
export function summarise(
  groups: readonly Group[],
  transitions: readonly TargetedTransition[],
  lambdas: readonly number[],
): UpdateSummary {
  const learnt = new Set(transitions.map((transition) => transition.group));
  const episodes = groups.flatMap((group) => group.episodes);
  const brokenEpisodes = episodes.filter((episode) => episode.stop === "broken").length;
  const pool = transitions.filter(({ inPool }) => inPool).length;
  return {
    groups: learnt.size,
    episodes: episodes.length - brokenEpisodes,
    brokenEpisodes,
    actionTokens: sum(transitions, ({ actionStart, actionEnd }) => actionEnd - actionStart),
    observationTokens: sum(transitions, ({ tokens: { observation } }) =>
      observation === undefined ? 0 : observation.end - observation.start,
    ),
    pool,
    selectedShare: transitions.filter(({ selected }) => selected).length / Math.max(pool, 1),
    meanActionEntropy: mean(transitions.map(({ entropy }) => entropy)),
    teacherDistance: teacherDistance(transitions),
    meanLambda: mean(lambdas.filter((_, g) => learnt.has(g))),
    cut: transitions.filter(({ tokens }) => tokens.cut).length,
  };
}

function sum<T>(items: readonly T[], numberOf: (item: T) => number): number {
  return items.reduce((total, item) => total + numberOf(item), 0);
}

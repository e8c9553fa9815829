/**
 * Signal: whether a group's episodes earned different returns. If all earned the same, the policy
 * has nothing to learn from them, and an optimiser that normalises its steps (Adam) would take a
 * full step along the world model's gradient alone, however small. Beyond the paper, off by
 * default.
 */
import type { Group } from "../rollout/episode.js";

/**
 * When world modelling is left out: in groups without signal, or in updates where no group has any.
 */
export type SkipWithoutSignal = "off" | "updates" | "groups";

/**
 * Whether each group's world-model term is left out; with `together` all groups count as one, as
 * for a critic.
 */
export function skippedGroups(
  groups: readonly Group[],
  skip: SkipWithoutSignal,
  together: boolean,
): readonly boolean[] {
  const returns = groups.map((group) =>
    group.episodes.filter(({ stop }) => stop !== "broken").map((episode) => episode.return),
  );
  const signals = together
    ? groups.map(() => differ(returns.flat()))
    : returns.map((episodes) => differ(episodes));
  switch (skip) {
    case "groups":
      return signals.map((signal) => !signal);
    case "updates":
      return signals.map(() => !signals.includes(true));
    default:
      return signals.map(() => false);
  }
}

const differ = (returns: readonly number[]): boolean => new Set(returns).size > 1;

/** The states of a group at which its episodes part, as the page of one of them lists them. */
import type { Episode } from "@pawl/core/rollout/episode.js";
import type { EpisodeRow, TreeView } from "./api.js";

/** The tree of an episode, from its group and their rows. */
export function treeOf(
  episode: Episode,
  group: readonly Episode[],
  rows: readonly EpisodeRow[],
): TreeView {
  const trunk = episode.branch?.from ?? episode.attempt;
  const steps = group.flatMap(({ branch }) => (branch?.from === trunk ? [branch.step] : []));
  const continues = ({ attempt, branch }: Episode, step: number): boolean =>
    attempt === trunk || (branch?.from === trunk && branch.step === step);
  return {
    hint: episode.hint ?? 0,
    shared: episode.branch?.step ?? 0,
    states: [...new Set(steps)]
      .sort((a, b) => a - b)
      .map((step) => ({ step, rows: rows.filter((_, i) => continues(group[i]!, step)) })),
  };
}

import type { Episode } from "../rollout/episode.js";

/** What a run is doing at the moment, and how much of it is done. */
export interface Activity {
  readonly what:
    | "the teacher plays"
    | "playing"
    | "predicting"
    | "judging"
    | "learning"
    | "evaluating";
  readonly done: number;
  readonly total: number;
  readonly unit: "episodes" | "predictions" | "turns" | "steps" | "tokens";
}

/** Called often, for live views. */
export type OnActivity = (activity: Activity) => void;

/** A callback that counts episodes, if anybody listens. */
export function countingEpisodes(
  what: Activity["what"],
  total: number,
  onActivity: OnActivity | undefined,
): { readonly onEpisode?: () => void } {
  if (onActivity === undefined) return {};
  let done = 0;
  onActivity({ what, done, total, unit: "episodes" });
  return { onEpisode: () => onActivity({ what, done: ++done, total, unit: "episodes" }) };
}

// Reports episodes that were left out because they broke: a broken episode is not a failure of the
// policy.

/** A sentence about the broken ones among these episodes; undefined if none broke. */
export function describeLeftOut(where: string, episodes: readonly Episode[]): string | undefined {
  const broken = episodes.filter((episode) => episode.stop === "broken");
  if (broken.length === 0) return undefined;
  const { task, error } = broken[0]!;
  return `${where}: ${broken.length} of ${episodes.length} episodes broke and were left out. The first, of task ${task.id}: ${error ?? "no reason given"}`;
}

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

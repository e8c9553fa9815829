/**
 * Reports episodes that were left out because they broke: a broken episode is not a failure of the
 * policy.
 */
import type { Episode } from "../rollout/episode.js";

/** A sentence about the broken ones among these episodes; undefined if none broke. */
export function describeLeftOut(where: string, episodes: readonly Episode[]): string | undefined {
  const broken = episodes.filter((episode) => episode.stop === "broken");
  if (broken.length === 0) return undefined;
  const { task, error } = broken[0]!;
  return `${where}: ${broken.length} of ${episodes.length} episodes broke and were left out. The first, of task ${task.id}: ${error ?? "no reason given"}`;
}

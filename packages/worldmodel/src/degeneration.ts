/** Degenerate output of a world model: the kinds of output that are not a response. */
import type { Outcome } from "./trajectory.js";

/**
 * `empty`: no text at all. `loop`: the same words over and over, never ending. `endless`: other
 * text that does not end. `context`: there was no room left to answer.
 */
export type Degeneration = "empty" | "loop" | "endless" | "context";

/** All kinds, in the order of tables. */
export const degenerations: readonly Degeneration[] = ["empty", "loop", "endless", "context"];

/** What is wrong with a sampled response, if anything. */
export function degenerationOf(
  { observation, success, ended }: Outcome & { readonly ended: boolean },
  ids: readonly number[],
): Degeneration | undefined {
  if (!ended) return repeats(ids) ? "loop" : "endless";
  return observation === "" && !success ? "empty" : undefined;
}

/** Repetitions of the last block that make a loop, and the longest block that is checked. */
const TIMES = 3;
const LONGEST = 64;

/** Whether the sequence ends in the same block three times or more. */
export function repeats(ids: readonly number[]): boolean {
  const longest = Math.min(LONGEST, Math.floor(ids.length / TIMES));
  for (let size = 1; size <= longest; size++) {
    const from = ids.length - size * TIMES;
    let same = true;
    for (let at = ids.length - 1; same && at >= from + size; at--)
      same = ids[at] === ids[at - size];
    if (same) return true;
  }
  return false;
}

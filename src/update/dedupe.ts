/**
 * De-duplication, beyond the paper (PaW §7) and off by default: of transitions that teach the same,
 * only the first of the update goes into the pool that selection draws from.
 *
 * Two transitions are the same if they share goal, current observation, action and next
 * observation; the history before them may differ.
 */
import { observationBefore } from "../advantages/anchors.js";
import type { Transition } from "./transitions.js";

/** Whether each transition is the first of its kind. */
export function firstOfKind(transitions: readonly Transition[]): readonly boolean[] {
  const seen = new Set<string>();
  return transitions.map(({ source, step }) => {
    const { action, observation } = source.steps[step]!;
    const kind = JSON.stringify([
      source.goal,
      observationBefore(source, step),
      action,
      observation,
    ]);
    if (seen.has(kind)) return false;
    seen.add(kind);
    return true;
  });
}

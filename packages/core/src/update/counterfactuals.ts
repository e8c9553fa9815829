/**
 * Counterfactual targets: what actions that were not taken would have brought. The world model learns
 * them in place of as many observation tokens of the same group, those of the least uncertain
 * transitions (PaW eq. 4), so that no more is learnt than without; nothing of the policy is.
 */
import type { Sequence } from "../text/sequence.js";
import type { MergedSequence } from "./merge.js";
import { positionsOf, type TargetedTransition } from "./transitions.js";
import type { Countable } from "./weights.js";

/** An action that was not taken, with what a copy of the world answered. */
export interface Counterfactual {
  /** Indices of the group and of its episode in the update. */
  readonly group: number;
  readonly episode: number;
  /** The prompt of a step, followed by the other action and its answer. */
  readonly sequence: Sequence;
  /** Whether the world carried it out. */
  readonly valid: boolean;
}

/** The tokens `[start, end)` of an answer to learn. */
interface Imagined extends Countable {
  readonly ids: readonly number[];
  readonly start: number;
}

/** The answers to learn: those of groups whose observations have a weight, as far as they fit. */
export function imaginedTargets(
  counterfactuals: readonly Counterfactual[],
  lambdas: readonly number[],
  maxTokens = Number.POSITIVE_INFINITY,
): readonly Imagined[] {
  return counterfactuals.flatMap(({ group, episode, sequence }) => {
    const { observationStart: start, observationEnd } = positionsOf(sequence);
    const end = Math.min(observationEnd, maxTokens);
    if (end <= start || !(lambdas[group]! > 0)) return [];
    const ids = sequence.ids.slice(0, end);
    return [{ group, episode, actionTokens: 0, observationTokens: end - start, ids, start }];
  });
}

/** The transitions without the observations that the answers take the place of. */
export function withRoom(
  transitions: readonly TargetedTransition[],
  imagined: readonly Imagined[],
): readonly TargetedTransition[] {
  const wanted = new Map<number, number>();
  for (const { group, observationTokens } of imagined)
    wanted.set(group, (wanted.get(group) ?? 0) + observationTokens);
  const left = new Set<TargetedTransition>();
  const least = [...transitions].sort((a, b) => a.entropy - b.entropy);
  for (const transition of least) {
    const { group, tokens } = transition;
    const more = wanted.get(group) ?? 0;
    if (more <= 0 || tokens.observation === undefined) continue;
    wanted.set(group, more - (tokens.observation.end - tokens.observation.start));
    left.add(transition);
  }
  return transitions.map((transition) =>
    left.has(transition)
      ? {
          ...transition,
          tokens: { ids: transition.sequence.ids.slice(0, transition.actionEnd), cut: false },
        }
      : transition,
  );
}

/** The answer as a sequence to train on, with the inputs that the others have; it is no step of an episode. */
export function imaginedSequence(
  { ids, start }: Imagined,
  worldWeight: number,
  inputs: readonly string[],
): MergedSequence {
  const zero = Object.fromEntries(inputs.map((name) => [name, new Float32Array(ids.length)]));
  return {
    ids,
    targets: new Uint8Array(ids.length).fill(1, start),
    inputs: { ...zero, worldWeight: new Float32Array(ids.length).fill(worldWeight, start) },
    steps: 0,
  };
}

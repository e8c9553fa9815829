/**
 * Weights of tokens, chosen so that the sum over tokens is the mean that a loss is defined as.
 *
 *                 action token of group g          observation token of a selected transition
 *   `group-mean`  1 / (|G|·|g|)                    λ_g / (|G|·|S_g|·|o|)       (PaW eq. 1, 9, 11)
 *   `token-mean`  1 / (number of action tokens)    λ_g / (number of selected observation tokens)
 *   `response-mean`  1 / (number of responses · the response's tokens)
 *
 * `group-mean` is also Dr. GRPO's mean, but for its constant factor (Liu et al. 2025, arXiv
 * 2503.20783), `token-mean` DAPO's (Yu et al. 2025, arXiv 2503.14476, DAPO eq. 8), `response-mean`
 * GRPO's own and GSPO's. |G| counts the groups with a transition, |g| the group's episodes with one, S_g its selected
 * transitions. All weights are computed for the whole update, before it is split into mini-batches,
 * because a mini-batch mixes groups; `minibatchWeights` then makes each mini-batch a fair sample of
 * the update.
 */
import type { TrainSequence } from "../engine/engine.js";

/** What the mean of a loss is taken over. */
export type Aggregation = "token-mean" | "group-mean";

/** The same for the policy's losses. A response is what answers one prompt: an episode's step. */
export type PolicyAggregation = Aggregation | "response-mean";

/** What weights depend on. */
export interface Countable {
  readonly group: number;
  readonly episode: number;
  readonly actionTokens: number;
  /** The tokens of the observation to predict; 0 if the transition is not selected. */
  readonly observationTokens: number;
}

/** The weight of an action token of each transition. */
export function policyWeights(
  transitions: readonly Countable[],
  aggregation: PolicyAggregation,
): readonly number[] {
  if (aggregation === "response-mean")
    return transitions.map(({ actionTokens }) => 1 / (transitions.length * actionTokens));
  if (aggregation === "token-mean") {
    const total = transitions.reduce((sum, transition) => sum + transition.actionTokens, 0);
    return transitions.map(() => 1 / total);
  }
  const episodes = new Map<number, Set<number>>();
  for (const { group, episode } of transitions)
    episodes.set(group, (episodes.get(group) ?? new Set()).add(episode));
  return transitions.map(({ group }) => 1 / (episodes.size * episodes.get(group)!.size));
}

/** The weight of a token of each transition's observation; 0 without one. */
export function worldWeights(
  transitions: readonly Countable[],
  lambdas: readonly number[],
  aggregation: Aggregation,
): readonly number[] {
  const groups = new Set(transitions.map((transition) => transition.group)).size;
  const selectedInGroup = new Map<number, number>();
  let tokens = 0;
  for (const { group, observationTokens } of transitions) {
    if (observationTokens === 0) continue;
    selectedInGroup.set(group, (selectedInGroup.get(group) ?? 0) + 1);
    tokens += observationTokens;
  }
  return transitions.map(({ group, observationTokens }) => {
    if (observationTokens === 0) return 0;
    const count =
      aggregation === "token-mean"
        ? tokens
        : groups * selectedInGroup.get(group)! * observationTokens;
    return lambdas[group]! / count;
  });
}

/**
 * The sequences of each mini-batch with weights for its own optimiser step. The mean of all
 * mini-batches' world-model losses is the update's. So is that of their policy losses with
 * `group-mean`; otherwise the policy loss is the mean over the mini-batch's own tokens, as in the
 * reference implementation, or responses.
 */
export function minibatchWeights(
  batches: readonly (readonly TrainSequence[])[],
  aggregation: PolicyAggregation,
): readonly (readonly TrainSequence[])[] {
  return batches.map((batch) => {
    const factors = {
      policyWeight: aggregation === "group-mean" ? batches.length : 1 / (policyShare(batch) || 1),
      worldWeight: batches.length,
    };
    return batch.map((sequence) => ({ ...sequence, inputs: scale(sequence.inputs, factors) }));
  });
}

function policyShare(batch: readonly TrainSequence[]): number {
  let share = 0;
  for (const { inputs } of batch) {
    const weights = inputs.policyWeight!;
    for (let i = 0; i < weights.length; i++) share += weights[i]!;
  }
  return share;
}

function scale(
  inputs: TrainSequence["inputs"],
  factors: Readonly<Record<string, number>>,
): TrainSequence["inputs"] {
  return Object.fromEntries(
    Object.entries(inputs).map(([name, values]) => {
      const factor = factors[name];
      if (factor === undefined) return [name, values];
      const scaled = new Float32Array(values.length);
      for (let i = 0; i < values.length; i++) scaled[i] = values[i]! * factor;
      return [name, scaled];
    }),
  );
}

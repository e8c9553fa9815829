/** Step sequences: the tokens of a transition with what each of them counts (`inputs.ts`). */
import type { Advantages } from "../advantages/advantages.js";
import type { StepSequence } from "./merge.js";
import type { TargetedTokens } from "./multistep.js";
import { actionTemperatures, type Transition } from "./transitions.js";

/** What an engine said of `actionSequences`: for each transition, one number per token. */
export interface ActionResults {
  /**
   * Log-probabilities under the policy that acted, computed again, because another sampler recorded those of its
   * own, or those at the temperature were not told; absent: those recorded are the policy's.
   */
  readonly oldLogprobs?: readonly ArrayLike<number>[];
  /** For the KL penalty. */
  readonly referenceLogprobs?: readonly ArrayLike<number>[];
  /** For selection by `full` entropy. */
  readonly entropies?: readonly ArrayLike<number>[];
  /** For PPO. */
  readonly values?: readonly ArrayLike<number>[];
}

/** The value of each input at the n-th action token, which is the token `at` of the sequence. */
export type ActionInputs = Readonly<Record<string, (at: number, n: number) => number>>;

/** The inputs of a transition's action tokens. */
export function actionInputs(
  { group, episode, step, logprobs: recorded }: Transition,
  i: number,
  { advantages, returns }: Advantages,
  weight: number,
  results: ActionResults,
): ActionInputs {
  const advantage = advantages[group]![episode]![step]!;
  const target = returns?.[group]?.[episode]?.[step];
  const { oldLogprobs, referenceLogprobs, values } = results;
  if (oldLogprobs === undefined && recorded === undefined)
    throw new Error(
      "the episodes carry no log-probabilities of their actions; record them, or pass what the engine says of actionSequences as oldLogprobs",
    );
  return {
    policyWeight: () => weight,
    advantage: (_, n) => (typeof advantage === "number" ? advantage : advantage[n]!),
    oldLogprob: (at, n) => (oldLogprobs === undefined ? recorded![n]! : oldLogprobs[i]![at]!),
    ...(oldLogprobs && recorded && { samplerLogprob: (_, n) => recorded[n]! }),
    ...(referenceLogprobs && { referenceLogprob: (at) => referenceLogprobs[i]![at]! }),
    ...(values && { oldValue: (at) => values[i]![at]! }),
    ...(target && { targetReturn: (_, n) => target[n]! }),
  };
}

/** A transition to train on, from its action on; without world weights there is no such input. */
export function stepSequence(
  { actionStart: start, actionEnd, temperature }: Transition,
  { ids, observations }: TargetedTokens,
  action: ActionInputs,
  worldWeight: readonly number[] | undefined,
): StepSequence {
  const length = ids.length - start;
  const targets = new Uint8Array(length).fill(1, 0, actionEnd - start);
  const inputs: Record<string, Float32Array> = {};
  for (const [name, valueAt] of Object.entries(action)) {
    const values = new Float32Array(length);
    for (let at = start; at < actionEnd; at++) values[at - start] = valueAt(at, at - start);
    inputs[name] = values;
  }
  if (worldWeight !== undefined) {
    const weights = new Float32Array(length);
    observations.forEach((observation, j) => {
      const [from, to] = [observation.start - start, observation.end - start];
      targets.fill(1, from, to);
      weights.fill(worldWeight[j]!, from, to);
    });
    inputs.worldWeight = weights;
  }
  const temperatures = actionTemperatures(temperature, length, 0, actionEnd - start);
  return { ids, start, targets, inputs, ...(temperatures && { temperatures }) };
}

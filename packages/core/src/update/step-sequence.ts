/** Step sequences: the tokens of a transition with their inputs (`inputs.ts`). */
import type { StepSequence } from "./merge.js";
import type { WeighedTransition } from "./transition-record.js";
import { actionTemperatures } from "./transitions.js";

/** The value of an input at the n-th action token, which is token `at` of the sequence. */
type InputAt = (at: number, n: number) => number;

/** The inputs of a transition's action tokens. */
function actionInputs(transition: WeighedTransition): Readonly<Record<string, InputAt>> {
  const { policyWeight, advantage, oldLogprobs, logprobs: recorded } = transition;
  const { referenceLogprobs, values, targetReturns } = transition;
  if (oldLogprobs === undefined && recorded === undefined)
    throw new Error(
      "the episodes have no log-probabilities of their actions; record them, or pass the engine's results for actionSequences as oldLogprobs",
    );
  return {
    policyWeight: () => policyWeight,
    advantage: (_, n) => (typeof advantage === "number" ? advantage : advantage[n]!),
    oldLogprob: (at, n) => (oldLogprobs === undefined ? recorded![n]! : oldLogprobs[at]!),
    ...(oldLogprobs && recorded && { samplerLogprob: (_: number, n: number) => recorded[n]! }),
    ...(referenceLogprobs && { referenceLogprob: (at: number) => referenceLogprobs[at]! }),
    ...(values && { oldValue: (at: number) => values[at]! }),
    ...(targetReturns && { targetReturn: (_: number, n: number) => targetReturns[n]! }),
  };
}

/** A transition to train on, from its action on. */
export function stepSequence(transition: WeighedTransition): StepSequence {
  const { actionStart: start, actionEnd, temperature, worldWeight } = transition;
  const { ids, observation } = transition.tokens;
  const length = ids.length - start;
  const targets = new Uint8Array(length).fill(1, 0, actionEnd - start);
  const inputs: Record<string, Float32Array> = {};
  for (const [name, valueAt] of Object.entries(actionInputs(transition))) {
    const values = new Float32Array(length);
    for (let at = start; at < actionEnd; at++) values[at - start] = valueAt(at, at - start);
    inputs[name] = values;
  }
  if (worldWeight !== undefined) {
    const weights = new Float32Array(length);
    if (observation !== undefined) {
      const [from, to] = [observation.start - start, observation.end - start];
      targets.fill(1, from, to);
      weights.fill(worldWeight, from, to);
    }
    inputs.worldWeight = weights;
  }
  const temperatures = actionTemperatures(temperature, length, 0, actionEnd - start);
  const { constraint } = transition.sequence;
  return {
    ...{ ids, start, targets, inputs },
    ...(temperatures && { temperatures }),
    ...(constraint && { constraints: [{ start, end: actionEnd, constraint }] }),
  };
}

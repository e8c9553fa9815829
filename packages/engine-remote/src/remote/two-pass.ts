/**
 * An objective on a server that only knows cross-entropy: a forward pass, then w = −d loss / d
 * log-prob computed here, then cross-entropy with weights w, whose gradient is the objective's.
 *
 * This costs a second forward pass, and works only for objectives of log-probabilities alone.
 */

import { type BackwardResult, EngineError, type TrainSequence } from "@pawl/core/engine/engine.js";
import { type Expr, expressionsOf, type Objective } from "@pawl/core/objectives/expression.js";
import { derivative } from "@pawl/core/objectives/expression-derivative.js";
import { evaluateTokens } from "@pawl/core/objectives/expression-evaluate.js";
import { inputsOf, quantitiesOf } from "@pawl/core/objectives/expression-interpret.js";
import { maskOf } from "./wire.js";

/** What the second pass needs, and the results already known from the first. */
export interface FirstPass {
  /** Per sequence and token: the weight of its log-probability; 0 if it is not a target. */
  readonly weights: readonly Float32Array[];
  readonly result: BackwardResult;
}

/** Rejects objectives that read more than log-probabilities. */
export function checkTwoPass(objective: Objective, server: string): void {
  const others = quantitiesOf(...expressionsOf(objective)).filter((name) => name !== "logprob");
  if (others.length > 0)
    throw new EngineError(
      `the objective reads ${others.join(" and ")}, which the engine server at ${server} cannot differentiate: it does not support objectives, only weights of log-probabilities. Use our own server (pawl serve engine), the embedded engine, or an objective without ${others.join(" and ")}`,
    );
}

/** Evaluates the objective and its derivative at the log-probabilities of a forward pass. */
export function firstPass(
  sequences: readonly TrainSequence[],
  objective: Objective,
  logprobs: readonly Float32Array[],
): FirstPass {
  const expressions: readonly Expr[] = [
    derivative(objective.loss, "logprob"),
    ...expressionsOf(objective),
  ];
  const inputs = inputsOf(...expressionsOf(objective));
  const names = Object.keys(objective.metrics);
  const sums = new Float64Array(names.length + 1);
  const weights = sequences.map((sequence, i) => {
    const mask = maskOf(sequence);
    const at = Array.from(mask.keys()).filter((token) => mask[token] === 1);
    const pick = (values: ArrayLike<number>) => at.map((token) => values[token]!);
    const [slopes, ...columns] = evaluateTokens(expressions, {
      count: at.length,
      quantities: { logprob: pick(logprobs[i]!) },
      inputs: Object.fromEntries(inputs.map((name) => [name, pick(sequence.inputs[name]!)])),
    });
    columns.forEach((column, k) => {
      column.forEach((value, j) => {
        if (!Number.isFinite(value))
          throw new EngineError(
            `${k === 0 ? "the loss" : `metric ${names[k - 1]}`} is ${value} at token ${at[j]} of sequence ${i}; check its inputs there`,
          );
        sums[k]! += value;
      });
    });
    const result = new Float32Array(mask.length);
    at.forEach((token, j) => {
      result[token] = -slopes![j]!;
    });
    return result;
  });
  return {
    weights,
    result: {
      loss: sums[0]!,
      metrics: Object.fromEntries(names.map((name, k) => [name, sums[k + 1]!])),
      logprobs,
    },
  };
}

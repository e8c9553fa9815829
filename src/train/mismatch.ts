/**
 * How far the log-probabilities that were recorded while sampling are from those that training computes with
 * the same weights. They would be equal in exact arithmetic; a sampler with other kernels, another precision
 * or old weights shows here, before it shows as a policy that does not learn.
 */
import type { BackwardResult, TrainSequence } from "../engine/engine.js";

/** Mean and largest difference over action tokens. */
export interface Mismatch {
  readonly "mismatch.mean": number;
  readonly "mismatch.max": number;
}

/** Compares what another sampler recorded for an update with what was computed for it again, where that is so. */
export function samplerMismatch(sequences: readonly TrainSequence[]): Mismatch | undefined {
  if (!sequences.some(({ inputs }) => "samplerLogprob" in inputs)) return undefined;
  return compare(sequences, ({ inputs }) => [inputs.samplerLogprob, inputs.oldLogprob]);
}

/** Compares a batch learnt before any weight has moved with what was recorded for it. */
export function mismatchOf(
  batch: readonly TrainSequence[],
  { logprobs }: BackwardResult,
): Mismatch {
  return compare(batch, ({ inputs }, i) => [inputs.oldLogprob, logprobs[i]]);
}

type Numbers = ArrayLike<number> | undefined;

function compare(
  sequences: readonly TrainSequence[],
  pairOf: (sequence: TrainSequence, i: number) => readonly [Numbers, Numbers],
): Mismatch {
  let sum = 0;
  let largest = 0;
  let count = 0;
  sequences.forEach((sequence, i) => {
    const { policyWeight } = sequence.inputs;
    const [recorded, computed] = pairOf(sequence, i);
    if (recorded === undefined || computed === undefined || policyWeight === undefined) return;
    for (let token = 1; token < recorded.length; token++) {
      if (policyWeight[token] === 0) continue;
      const difference = Math.abs(computed[token]! - recorded[token]!);
      sum += difference;
      largest = Math.max(largest, difference);
      count += 1;
    }
  });
  return { "mismatch.mean": sum / Math.max(count, 1), "mismatch.max": largest };
}

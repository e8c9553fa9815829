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

/** Compares a batch learnt before any weight has moved with what was recorded for it. */
export function mismatchOf(
  batch: readonly TrainSequence[],
  { logprobs }: BackwardResult,
): Mismatch {
  let sum = 0;
  let largest = 0;
  let count = 0;
  batch.forEach(({ inputs: { oldLogprob, policyWeight } }, i) => {
    if (oldLogprob === undefined || policyWeight === undefined) return;
    for (let token = 1; token < oldLogprob.length; token++) {
      if (policyWeight[token] === 0) continue;
      const difference = Math.abs(logprobs[i]![token]! - oldLogprob[token]!);
      sum += difference;
      largest = Math.max(largest, difference);
      count += 1;
    }
  });
  return { "mismatch.mean": sum / Math.max(count, 1), "mismatch.max": largest };
}

/**
 * How far the log-probabilities recorded while sampling are from those that training computes with
 * the same weights. In exact arithmetic they would be equal; a sampler with other kernels, another
 * precision or old weights shows here before it shows as a policy that does not learn.
 */
import {
  type BackwardResult,
  type Capabilities,
  EngineError,
  type TrainSequence,
} from "../engine/engine.js";

/** Mean and largest difference over action tokens. */
export interface Mismatch {
  readonly "mismatch.mean": number;
  readonly "mismatch.max": number;
}

/** Compares what a separate sampler recorded for an update with what was recomputed, if it was. */
export function samplerMismatch(sequences: readonly TrainSequence[]): Mismatch | undefined {
  if (!sequences.some(({ inputs }) => "samplerLogprob" in inputs)) return undefined;
  return compare(sequences, ({ inputs }) => [inputs.samplerLogprob, inputs.oldLogprob]);
}

/** Compares a batch that is learnt before any weight has moved with what was recorded for it. */
export function mismatchOf(
  batch: readonly TrainSequence[],
  { logprobs }: BackwardResult,
): Mismatch {
  return compare(batch, ({ inputs }, i) => [inputs.oldLogprob, logprobs[i]]);
}

/** What rounding explains, with a margin: the mean is about 1e-6 in 32 bits, 1e-2 in 16 bits. */
const LIMITS = { exact: 1e-3, rough: 0.1 } as const;

/** The mean above which an engine's samples do not come from its weights. */
export function mismatchLimit(
  { sixteenBits, otherSampler }: Pick<Capabilities, "sixteenBits" | "otherSampler">,
  set: number | undefined,
): number {
  // A sampler chooses its own precision, mostly 16 bits.
  return set ?? (sixteenBits || otherSampler ? LIMITS.rough : LIMITS.exact);
}

/** Stops a run before it learns from samples that do not come from its weights. */
export function refuseMismatch(
  mismatch: Mismatch,
  limit: number,
  { name, otherSampler }: Pick<Capabilities, "name" | "otherSampler">,
): void {
  const mean = mismatch["mismatch.mean"];
  if (mean <= limit) return;
  const cause =
    otherSampler === true
      ? "The sampler has other weights, or computes another model: see its log"
      : "It samples and learns with different arithmetic";
  throw new EngineError(
    `mismatch.mean is ${mean.toPrecision(3)} nats, above ${limit}: for ${name}, the log-probabilities recorded while sampling differ from those that learning computes with the same weights by more than rounding explains, so learning from them would not follow what was sampled. ${cause}. Nothing was learnt from this update. To continue anyway, set mismatchLimit (--mismatch-limit) higher`,
  );
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

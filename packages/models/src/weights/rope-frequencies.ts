/** The frequencies of rotary position embeddings, as transformers computes them. */
import type { RopeScaling } from "./rope.js";

/**
 * Radians per position of each pair of a head, in single precision as in transformers and PyTorch,
 * so that long contexts agree.
 */
export function ropeFrequencies(
  theta: number,
  half: number,
  scaling: RopeScaling | undefined,
): Float32Array {
  const stretch = scaling && stretched(scaling, theta, half);
  return Float32Array.from({ length: half }, (_, i) => {
    const plain = 1 / theta ** (i / half);
    return stretch === undefined ? plain : stretch(plain, i);
  });
}

/** The new frequency of pair i, given its plain one. */
function stretched(
  scaling: RopeScaling,
  theta: number,
  half: number,
): (plain: number, i: number) => number {
  if (scaling.type === "dynamic") return (plain) => plain;
  if (scaling.type === "linear") return (plain) => plain / scaling.factor;
  const between = (plain: number, kept: number) =>
    (1 - kept) * (plain / scaling.factor) + kept * plain;
  const clamp = (x: number) => Math.min(1, Math.max(0, x));
  if (scaling.type === "llama3") {
    const { lowFrequencyFactor: low, highFrequencyFactor: high, originalContext } = scaling;
    const turns = (plain: number) => (originalContext * plain) / (2 * Math.PI);
    return (plain) => between(plain, clamp((turns(plain) - low) / (high - low)));
  }
  // The (fractional) pair that turns so many times in the original context.
  const pairOf = (turns: number) =>
    (half * Math.log(scaling.originalContext / (turns * 2 * Math.PI))) / Math.log(theta);
  const [first, last] = [pairOf(scaling.betaFast), pairOf(scaling.betaSlow)];
  const begin = Math.max(scaling.truncate ? Math.floor(first) : first, 0);
  const end = Math.min(scaling.truncate ? Math.ceil(last) : last, 2 * half - 1);
  const width = end === begin ? 0.001 : end - begin;
  return (plain, i) => between(plain, 1 - clamp((i - begin) / width));
}

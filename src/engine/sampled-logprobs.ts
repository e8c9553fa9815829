/** Log-probabilities of a sample under the distribution that was drawn from, where the model's own tell them. */
import type { SamplingOptions } from "./engine.js";

/**
 * What follows from the model's own log-probabilities alone: themselves at temperature 1 with nothing cut, 0 at
 * temperature 0. Undefined where it takes more: a tempered distribution has another sum.
 */
export function knownSampledLogprobs(
  { temperature = 1, topK = 0, topP = 1 }: Omit<SamplingOptions, "maxTokens">,
  own: readonly number[],
): readonly number[] | undefined {
  if (temperature === 0) return own.map(() => 0);
  return temperature === 1 && topK === 0 && topP === 1 ? own : undefined;
}

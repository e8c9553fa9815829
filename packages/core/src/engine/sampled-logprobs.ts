/**
 * Log-probabilities of a sample under the distribution it was drawn from, if the model's own
 * determine them.
 */
import type { SamplingOptions } from "./engine.js";

/**
 * What follows from the model's own log-probabilities alone: the same at temperature 1 without
 * truncation, 0 at temperature 0. Undefined otherwise, because a tempered distribution has a
 * different normaliser.
 */
export function sampledLogprobsOf(
  { temperature = 1, topK = 0, topP = 1 }: Omit<SamplingOptions, "maxTokens">,
  own: readonly number[],
): readonly number[] | undefined {
  if (temperature === 0) return own.map(() => 0);
  return temperature === 1 && topK === 0 && topP === 1 ? own : undefined;
}

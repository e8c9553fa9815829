/**
 * Chooses one token from a distribution: temperature has been applied already; truncation and the
 * draw happen here.
 */

import type { SamplingOptions } from "@pawl/core/engine/engine.js";
import type { Random } from "@pawl/core/random.js";

/** A token and the log-probability it had under the distribution it was drawn from. */
export interface Choice {
  readonly token: number;
  readonly sampledLogprob: number;
}

/** Draws a token from probabilities that sum to one. */
export function chooseToken(
  probabilities: Float32Array,
  options: SamplingOptions,
  random: Random,
): Choice {
  if (options.temperature === 0) return { token: largest(probabilities), sampledLogprob: 0 };
  const { topK = 0, topP = 1 } = options;
  const uniform = random.next();
  const whole = (topK === 0 || topK >= probabilities.length) && topP >= 1;
  return whole ? draw(probabilities, uniform) : drawCut(probabilities, topK, topP, uniform);
}

function largest(probabilities: Float32Array): number {
  let best = 0;
  for (let i = 1; i < probabilities.length; i++)
    if (probabilities[i]! > probabilities[best]!) best = i;
  return best;
}

function draw(probabilities: Float32Array, uniform: number): Choice {
  let sum = 0;
  for (let i = 0; i < probabilities.length; i++) {
    sum += probabilities[i]!;
    if (sum > uniform) return { token: i, sampledLogprob: Math.log(probabilities[i]!) };
  }
  // Rounding may leave the sum slightly below one: then it is the last possible token.
  const last = probabilities.findLastIndex((p) => p > 0);
  return { token: last, sampledLogprob: Math.log(probabilities[last]!) };
}

function drawCut(probabilities: Float32Array, topK: number, topP: number, uniform: number): Choice {
  const order = Array.from(probabilities.keys()).sort(
    (a, b) => probabilities[b]! - probabilities[a]! || a - b,
  );
  const most = topK === 0 ? order.length : Math.min(topK, order.length);
  let kept = 0;
  let mass = 0;
  // The token that reaches topP is kept, so at least one always is.
  while (kept < most && (kept === 0 || mass < topP)) mass += probabilities[order[kept++]!]!;
  let sum = 0;
  let at = 0;
  while (at < kept - 1) {
    sum += probabilities[order[at]!]!;
    if (sum > uniform * mass) break;
    at += 1;
  }
  const token = order[at]!;
  return { token, sampledLogprob: Math.log(probabilities[token]! / mass) };
}

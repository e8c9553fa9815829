/**
 * Off-policy steps: tokens that other probabilities sampled than those that a ratio starts from,
 * because another program sampled them, or older weights. Each token's loss is multiplied by a
 * truncated importance weight, without a gradient:
 *
 *   weight = min(exp(old log p − sampler's log p), cap)
 *
 * With `clip` it is the decoupled objective (Hilton et al. 2022, arXiv 2110.00641): the old policy is
 * the one to stay near, the sampler's the one that acted. Truncated: Ionides 2008; for samplers of
 * another program: Yao et al. 2025, "Your efficient RL framework secretly brings you off-policy RL
 * training".
 */
import { less, min, mul, sub } from "./expression.js";
import { oldLogprob, samplerLogprob } from "./inputs.js";
import { boundedRatio, type TokenLoss } from "./policy.js";

/** How far to trust another sampler's tokens. */
interface ImportanceOptions {
  /** Upper bound of a token's weight. */
  readonly importanceCap: number;
}

/** A token's loss by the tokens of another sampler. */
export function offPolicy(
  { loss, metrics }: TokenLoss,
  { importanceCap: cap }: ImportanceOptions,
): TokenLoss {
  const ratio = boundedRatio(sub(oldLogprob, samplerLogprob));
  const weight = min(ratio, cap);
  return {
    loss: mul(weight, loss),
    metrics: { ...metrics, "policy.importance": weight, "policy.truncated": less(cap, ratio) },
  };
}

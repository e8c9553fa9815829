/**
 * The clipped policy gradient with dual clip (Schulman et al. 2017, arXiv 1707.06347, equation 7; dual clip:
 * Ye et al. 2020, arXiv 1912.09729). The paper's L_RL (1), as its baselines compute it.
 *
 *   ratio = exp(log p − old log p)
 *   loss  = max(−A·ratio, −A·clamp(ratio, 1 − low, 1 + high)), and for A < 0 no more than −A·dual
 *
 * d loss / d log p = −A·ratio where nothing is clipped, else 0.
 */
import {
  clamp,
  exp,
  less,
  logprob,
  max,
  min,
  mul,
  neg,
  type Objective,
  select,
  sub,
} from "./expression.js";
import { advantage, counted, oldLogprob, policyWeight, weighted } from "./inputs.js";

/** How far one update may move the policy. */
export interface ClipOptions {
  /** The ratio counts down to 1 − clipLow … */
  readonly clipLow: number;
  /** … and up to 1 + clipHigh. */
  readonly clipHigh: number;
  /** A bad action's loss is at most this many times its advantage. */
  readonly dualClip: number;
}

/** Beyond this the ratio is clipped anyway; the bound only keeps it from overflowing. */
const LARGEST_LOG_RATIO = 20;

/** The clipped policy gradient over action tokens. */
export function policyObjective({ clipLow, clipHigh, dualClip }: ClipOptions): Objective {
  const difference = clamp(sub(logprob, oldLogprob), -LARGEST_LOG_RATIO, LARGEST_LOG_RATIO);
  const ratio = exp(difference);
  const plain = neg(mul(advantage, ratio));
  const clipped = neg(mul(advantage, clamp(ratio, 1 - clipLow, 1 + clipHigh)));
  const pessimistic = max(plain, clipped);
  const ceiling = neg(mul(advantage, dualClip));
  const isBad = less(advantage, 0);
  const loss = weighted(policyWeight, select(isBad, min(pessimistic, ceiling), pessimistic));
  return {
    loss,
    metrics: {
      "policy.loss": loss,
      "policy.tokens": counted(policyWeight, 1),
      "policy.ratio": counted(policyWeight, ratio),
      "policy.clipped": counted(policyWeight, less(plain, clipped)),
      "policy.dualClipped": counted(policyWeight, mul(isBad, less(ceiling, pessimistic))),
      // Mean of old − new log-probability: how far the policy has moved in this update.
      "policy.moved": counted(policyWeight, neg(difference)),
    },
  };
}

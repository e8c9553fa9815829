/**
 * The clipped policy gradient with dual clip (Schulman et al. 2017, arXiv 1707.06347, PPO eq. 7;
 * dual clip: Ye et al. 2020, arXiv 1912.09729). PaW's L_RL (PaW eq. 1), as its baselines compute
 * it.
 *
 *   ratio = exp(log p − old log p)
 *   loss  = max(−A·ratio, −A·clamp(ratio, 1 − low, 1 + high)), and for A < 0 no more than −A·dual
 *
 * d loss / d log p = −A·ratio if nothing is clipped, else 0.
 *
 * If a separate sampler sampled the actions, its probabilities are not quite those of the policy
 * that learns. Each token's loss is then multiplied by the truncated importance weight (Yao et al.
 * 2025, "Your efficient RL framework secretly brings you off-policy RL training"; truncated:
 * Ionides 2008):
 *
 *   weight = min(exp(old log p − sampler's log p), cap)
 */
import {
  add,
  clamp,
  type Expr,
  entropy,
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
  value,
} from "./expression.js";
import {
  advantage,
  counted,
  oldLogprob,
  oldValue,
  policyWeight,
  referenceLogprob,
  samplerLogprob,
  targetReturn,
  weighted,
} from "./inputs.js";

// A KL penalty towards the reference policy: the k3 estimator of KL(policy ‖ reference) (Schulman
// 2020, "Approximating KL divergence"), clamped twice as in the reference implementation (verl).
//
//   d  = clamp(r − l, ±20),   l = log p, r = reference log p
//   k3 = clamp(exp(d) − d − 1, ±10)
//
// d k3 / d log p = 1 − exp(r − l) while the estimate is below 10, that is for r − l between about
// −11 and 2.6; otherwise 0: a token far out has a loss of 10 and no gradient. The first clamp only
// keeps exp from overflowing.

const LARGEST_DIFFERENCE = 20;
const LARGEST_ESTIMATE = 10;

/** β times the k3 estimate over action tokens. */
export function klObjective(beta: number): Objective {
  const difference = clamp(sub(referenceLogprob, logprob), -LARGEST_DIFFERENCE, LARGEST_DIFFERENCE);
  const estimate = sub(sub(exp(difference), difference), 1);
  const k3 = clamp(estimate, -LARGEST_ESTIMATE, LARGEST_ESTIMATE);
  return {
    loss: weighted(policyWeight, mul(beta, k3)),
    metrics: { "policy.kl": counted(policyWeight, k3) },
  };
}

/** How far one update may move the policy. */
export interface ClipOptions {
  /** The ratio is clipped below at 1 − clipLow … */
  readonly clipLow: number;
  /** … and above at 1 + clipHigh. */
  readonly clipHigh: number;
  /** A bad action's loss is at most this many times its advantage. */
  readonly dualClip: number;
}

/** How far to trust a separate sampler's tokens. */
export interface ImportanceOptions {
  /** Upper bound of a token's weight. */
  readonly importanceCap: number;
}

/** Beyond this the ratio is clipped anyway; the bound only prevents overflow. */
const LARGEST_LOG_RATIO = 20;

/**
 * The clipped policy gradient over action tokens; with `importance`, over a separate sampler's.
 * `other` is another token loss in its place.
 */
export function policyObjective(
  { clipLow, clipHigh, dualClip }: ClipOptions,
  importance?: ImportanceOptions,
  other?: Expr,
): Objective {
  const difference = clamp(sub(logprob, oldLogprob), -LARGEST_LOG_RATIO, LARGEST_LOG_RATIO);
  const ratio = exp(difference);
  const plain = neg(mul(advantage, ratio));
  const clipped = neg(mul(advantage, clamp(ratio, 1 - clipLow, 1 + clipHigh)));
  const pessimistic = max(plain, clipped);
  const ceiling = neg(mul(advantage, dualClip));
  const isBad = less(advantage, 0);
  const own = other ?? select(isBad, min(pessimistic, ceiling), pessimistic);
  const correction = importance && correct(own, importance.importanceCap);
  const loss = weighted(policyWeight, correction?.loss ?? own);
  return {
    loss,
    metrics: {
      "policy.loss": loss,
      "policy.tokens": counted(policyWeight, 1),
      "policy.ratio": counted(policyWeight, ratio),
      ...(other === undefined && {
        "policy.clipped": counted(policyWeight, less(plain, clipped)),
        "policy.dualClipped": counted(policyWeight, mul(isBad, less(ceiling, pessimistic))),
      }),
      // Mean of old − new log-probability: how far the policy has moved in this update.
      "policy.moved": counted(policyWeight, neg(difference)),
      ...correction?.metrics,
    },
  };
}

/**
 * The loss of a separate sampler's tokens, each weighted by how much likelier the policy was to
 * sample it.
 */
function correct(loss: Expr, cap: number): Objective {
  const bound = clamp(sub(oldLogprob, samplerLogprob), -LARGEST_LOG_RATIO, LARGEST_LOG_RATIO);
  const ratio = exp(bound);
  const weight = min(ratio, cap);
  return {
    loss: mul(weight, loss),
    metrics: {
      "policy.importance": counted(policyWeight, weight),
      "policy.truncated": counted(policyWeight, less(cap, ratio)),
    },
  };
}

// An entropy bonus: −c·H, where H is the Shannon entropy of the distribution an action token was
// sampled from. Needs an engine that reports entropies as a differentiable quantity.

/** The entropy bonus over action tokens. */
export function entropyObjective(coefficient: number): Objective {
  return {
    loss: weighted(policyWeight, mul(-coefficient, entropy)),
    metrics: { "policy.entropy": counted(policyWeight, entropy) },
  };
}

// The critic's loss, with the value clipped to near what it was before the update (Schulman et al.
// 2017, clipped as in PPO's implementations).
//
//   near = clamp(V, V_old − clip, V_old + clip)
//   loss = c · ½ · max((V − R)², (near − R)²)
//
// d loss / d V = c·(V − R), or 0 if the clipped error is the larger one.

/** How the critic learns. */
interface ValueOptions {
  readonly valueClip: number;
  readonly valueCoefficient: number;
}

/** The clipped value loss over action tokens. */
export function valueObjective({ valueClip, valueCoefficient }: ValueOptions): Objective {
  const near = clamp(value, sub(oldValue, valueClip), add(oldValue, valueClip));
  const error = squaredError(value);
  const nearError = squaredError(near);
  return {
    loss: weighted(policyWeight, mul(0.5 * valueCoefficient, max(error, nearError))),
    metrics: {
      "policy.valueError": counted(policyWeight, error),
      "policy.valueClipped": counted(policyWeight, less(error, nearError)),
      "policy.value": counted(policyWeight, value),
    },
  };
}

function squaredError(prediction: Expr): Expr {
  const error = sub(prediction, targetReturn);
  return mul(error, error);
}

/**
 * The clipped policy gradient with dual clip (Schulman et al. 2017, arXiv 1707.06347, PPO eq. 7;
 * dual clip: Ye et al. 2020, arXiv 1912.09729). PaW's L_RL (PaW eq. 1), as its baselines compute
 * it.
 *
 *   ratio = exp(log p − old log p)
 *   loss  = max(−A·ratio, −A·clamp(ratio, 1 − low, 1 + high)), and for A < 0 no more than −A·dual
 *
 * d loss / d log p = −A·ratio if nothing is clipped, else 0.
 */
import { z } from "zod";
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
  targetReturn,
  weighted,
} from "./inputs.js";
import type { LossOptions, LossSettings } from "./world-loss.js";

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

/** A loss of one action token, unweighted. */
export interface TokenLoss {
  readonly loss: Expr;
  /** What else to report of it: numbers whose mean over tokens is taken. */
  readonly metrics: Readonly<Record<string, Expr>>;
}

/** A policy loss of this package. */
export interface OwnPolicyLoss<S extends LossSettings> {
  /** Its name in help. */
  readonly title: string;
  readonly settings: S;
  token(options: LossOptions<S>): TokenLoss;
}

/** How far one update may move the policy. */
export const clipSettings = {
  clipLow: z
    .number()
    .min(0)
    .max(1)
    .default(0.2)
    .describe("ε_low: lower clip range of the probability ratio"),
  clipHigh: z
    .number()
    .min(0)
    .default(0.2)
    .describe("ε_high: upper clip range of the probability ratio"),
  dualClip: z
    .number()
    .gt(1)
    .default(3)
    .describe("dual-clip constant c: bounds the loss of actions with negative advantage"),
};

/** Beyond this a ratio is clipped anyway; the bound only prevents overflow. */
export const boundedRatio = (logRatio: Expr): Expr => exp(clamp(logRatio, -20, 20));

/** The probability of an action token, divided by what it was when it was sampled. */
export const tokenRatio = boundedRatio(sub(logprob, oldLogprob));

/** What a ratio is worth if it may leave 1 − low … 1 + high only where that lowers the objective. */
export function pessimisticLoss(ratio: Expr, low: number, high: number) {
  const plain = neg(mul(advantage, ratio));
  const clipped = neg(mul(advantage, clamp(ratio, 1 - low, 1 + high)));
  return { loss: max(plain, clipped), isClipped: less(plain, clipped) };
}

/** The clipped policy gradient of one action token. */
function clippedLoss({ clipLow, clipHigh, dualClip }: LossOptions<typeof clipSettings>): TokenLoss {
  const { loss, isClipped } = pessimisticLoss(tokenRatio, clipLow, clipHigh);
  const ceiling = neg(mul(advantage, dualClip));
  const isBad = less(advantage, 0);
  return {
    loss: select(isBad, min(loss, ceiling), loss),
    metrics: {
      "policy.clipped": isClipped,
      "policy.dualClipped": mul(isBad, less(ceiling, loss)),
    },
  };
}

export const clip: OwnPolicyLoss<typeof clipSettings> = {
  title: "the clipped policy gradient",
  settings: clipSettings,
  token: clippedLoss,
};

/** A policy loss over action tokens. */
export function policyObjective(token: TokenLoss): Objective {
  const loss = weighted(policyWeight, token.loss);
  const own = Object.entries(token.metrics);
  return {
    loss,
    metrics: {
      "policy.loss": loss,
      "policy.tokens": counted(policyWeight, 1),
      "policy.ratio": counted(policyWeight, tokenRatio),
      ...Object.fromEntries(own.map(([name, x]) => [name, counted(policyWeight, x)])),
      // Mean of old − new log-probability: how far the policy has moved in this update.
      "policy.moved": counted(policyWeight, neg(clamp(sub(logprob, oldLogprob), -20, 20))),
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

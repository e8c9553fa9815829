/**
 * A KL penalty towards the reference policy: the k3 estimator of KL(policy ‖ reference) (Schulman
 * 2020, "Approximating KL divergence"), clamped twice as in the reference implementation (verl).
 *
 *   d  = clamp(r − l, ±20),   l = log p, r = reference log p
 *   k3 = clamp(exp(d) − d − 1, ±10)
 *
 * d k3 / d log p = 1 − exp(r − l) while the estimate is below 10, that is for r − l between about
 * −11 and 2.6; otherwise 0: a token far out has a loss of 10 and no gradient. The first clamp only
 * keeps exp from overflowing.
 */
import { clamp, exp, logprob, mul, type Objective, sub } from "./expression.js";
import { counted, policyWeight, referenceLogprob, weighted } from "./inputs.js";

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

/**
 * A penalty for leaving the reference policy: the k3 estimator of KL(policy ‖ reference) (Schulman 2020,
 * "Approximating KL divergence").
 *
 *   k3 = exp(r − l) − (r − l) − 1,   l = log p, r = reference log p, r − l clamped to ±10
 *
 * d k3 / d log p = 1 − exp(r − l) within the clamp, else 0.
 */
import { clamp, exp, logprob, mul, type Objective, sub } from "./expression.js";
import { counted, policyWeight, referenceLogprob, weighted } from "./inputs.js";

const LARGEST_DIFFERENCE = 10;

/** β times the k3 estimate over action tokens. */
export function klObjective(beta: number): Objective {
  const difference = clamp(sub(referenceLogprob, logprob), -LARGEST_DIFFERENCE, LARGEST_DIFFERENCE);
  const k3 = sub(sub(exp(difference), difference), 1);
  return {
    loss: weighted(policyWeight, mul(beta, k3)),
    metrics: { "policy.kl": counted(policyWeight, k3) },
  };
}

/**
 * An entropy bonus: −c·H, where H is the Shannon entropy of the distribution an action token was
 * sampled from. Needs an engine that reports entropies as a differentiable quantity.
 */
import { entropy, mul, type Objective } from "./expression.js";
import { counted, policyWeight, weighted } from "./inputs.js";

/** The entropy bonus over action tokens. */
export function entropyObjective(coefficient: number): Objective {
  return {
    loss: weighted(policyWeight, mul(-coefficient, entropy)),
    metrics: { "policy.entropy": counted(policyWeight, entropy) },
  };
}

/**
 * The critic's loss, with the value clipped to near what it was before the update (Schulman et al.
 * 2017, clipped as in PPO's implementations).
 *
 *   near = clamp(V, V_old − clip, V_old + clip)
 *   loss = c · ½ · max((V − R)², (near − R)²)
 *
 * d loss / d V = c·(V − R), or 0 if the clipped error is the larger one.
 */
import { add, clamp, type Expr, less, max, mul, type Objective, sub, value } from "./expression.js";
import { counted, oldValue, policyWeight, targetReturn, weighted } from "./inputs.js";

/** How the critic learns. */
export interface ValueOptions {
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

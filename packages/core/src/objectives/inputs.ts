/**
 * The constants that objectives name, one number per token, known before the forward pass.
 *
 * | input              | on tokens of | meaning                                                   |
 * |--------------------|--------------|-----------------------------------------------------------|
 * | `advantage`        | actions      | how much better the action was than expected              |
 * | `oldLogprob`       | actions      | log-probability under the policy that acted               |
 * | `responseLogRatio` | actions      | mean of log p − old log p over the token's whole response |
 * | `samplerLogprob`   | actions      | the same, computed by a separate sampler, if there is one |
 * | `referenceLogprob` | actions      | log-probability under the frozen reference, for KL        |
 * | `oldValue`         | actions      | the critic's value before the update, for PPO             |
 * | `targetReturn`     | actions      | the critic's target, for PPO                              |
 * | `policyWeight`     | actions      | weight in the policy's losses; 0 on all other tokens      |
 * | `worldWeight`      | observations | weight in the world model's loss; 0 on all other tokens   |
 *
 * A loss is summed over tokens, so every mean is in the weights (`weights.ts`), and a weight of 0
 * excludes the token from the loss. All inputs are 0 on tokens they do not apply to.
 *
 * Metrics are named `policy.…`, `world.…`: `….tokens` counts tokens, `….loss` is what the objective
 * adds to the loss, and all others are sums over tokens that `meanMetrics` divides by the count.
 */
import { type Expr, input, mul, type Operand, select } from "./expression.js";

export const advantage = input("advantage");
export const oldLogprob = input("oldLogprob");
export const responseLogRatio = input("responseLogRatio");
export const samplerLogprob = input("samplerLogprob");
export const referenceLogprob = input("referenceLogprob");
export const oldValue = input("oldValue");
export const targetReturn = input("targetReturn");
export const policyWeight = input("policyWeight");
export const worldWeight = input("worldWeight");

/** A loss times its weight; if that is 0 the loss is not evaluated, so it cannot bring in NaN. */
export function weighted(weight: Expr, loss: Expr): Expr {
  return select(weight, mul(weight, loss), 0);
}

/** A number to be summed over the tokens that have this weight. */
export function counted(weight: Expr, x: Operand): Expr {
  return select(weight, x, 0);
}

/** The metrics of an objective, summed over all sequences, as means per token; losses stay sums. */
export function meanMetrics(sums: Readonly<Record<string, number>>): Record<string, number> {
  return Object.fromEntries(
    Object.entries(sums).map(([name, sum]) => {
      const tokens = sums[`${name.slice(0, name.indexOf("."))}.tokens`];
      const isMean = tokens !== undefined && !/\.(tokens|loss)$/.test(name);
      return [name, isMean ? sum / Math.max(tokens, 1) : sum];
    }),
  );
}

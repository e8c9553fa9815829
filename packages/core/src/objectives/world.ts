/**
 * The world model's loss: predict the observation that an action caused, by the chosen token loss
 * (`world-losses.ts`). The mean over tokens and transitions (PaW eq. 9) and the balance λ (PaW eq.
 * 11) are in `worldWeight`.
 */
import { type Expr, type Objective, sub } from "./expression.js";
import { counted, weighted, worldWeight } from "./inputs.js";
import { checkExpression } from "./loss-plugin.js";
import { ALL, p } from "./world-loss.js";
import { type WorldOptions, worldLossOf } from "./world-losses.js";

export type { WorldOptions } from "./world-losses.js";

/** The loss of one observation token, unweighted. */
export function worldTokenLoss(options: WorldOptions): Expr {
  const loss = worldLossOf(options).token(options);
  return checkExpression(`world-model loss "${options.loss}"`, loss, []);
}

/** The world model's loss over observation tokens. */
export function worldObjective(options: WorldOptions): Objective {
  const { kept } = worldLossOf(options);
  const loss = weighted(worldWeight, worldTokenLoss(options));
  return {
    loss,
    metrics: {
      "world.loss": loss,
      "world.tokens": counted(worldWeight, 1),
      "world.clipped": counted(worldWeight, sub(1, kept?.(options) ?? ALL)),
      "world.p": counted(worldWeight, p),
    },
    // Masked tokens have no gradient: nearly all of them, once a model knows its world.
    ...(kept !== undefined && { sparse: true }),
  };
}

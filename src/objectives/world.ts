/**
 * The world model's token losses: predict the observation that an action caused. With p the probability
 * of the observation's token:
 *
 *   ce    −log p           d/d log p = −1      (PaW eq. 5)
 *   mae    1 − p           d/d log p = −p      (PaW eq. 6)
 *   cmae   m·(1 − p)       d/d log p = −m·p    (PaW eq. 8)
 *
 * The mask m keeps some tokens and has no gradient, as comparisons have none. PaW eq. 7 keeps p ≤ ρ
 * (`below`), what the model does not know yet; PaW §4.7 reads as if it kept the others, so there
 * are also p ≥ ρ (`above`) and p ≤ 1 − ρ (`margin`). The mean over tokens and transitions (PaW eq. 9) and the
 * balance λ (PaW eq. 11) are in `worldWeight`.
 */
import {
  constant,
  type Expr,
  exp,
  lessEqual,
  logprob,
  mul,
  neg,
  type Objective,
  sub,
} from "./expression.js";
import { counted, weighted, worldWeight } from "./inputs.js";

export type WorldLoss = "cmae" | "mae" | "ce";
export type WorldMask = "below" | "above" | "margin";

/** How observations are learned. */
export interface WorldOptions {
  readonly loss: WorldLoss;
  /** Which tokens `cmae` keeps. */
  readonly mask: WorldMask;
  /** ρ of the mask. */
  readonly rho: number;
}

const p = exp(logprob);

/** The loss of one observation token, before any weight. */
export function worldTokenLoss(options: WorldOptions): Expr {
  if (options.loss === "ce") return neg(logprob);
  return mul(keptTokens(options), sub(1, p));
}

/** m: 1 where the token counts, else 0. */
function keptTokens({ loss, mask, rho }: WorldOptions): Expr {
  if (loss !== "cmae") return constant(1);
  switch (mask) {
    case "below":
      return lessEqual(p, rho);
    case "above":
      return lessEqual(rho, p);
    case "margin":
      return lessEqual(p, 1 - rho);
  }
}

/** The world model's loss over observation tokens. */
export function worldObjective(options: WorldOptions): Objective {
  const loss = weighted(worldWeight, worldTokenLoss(options));
  return {
    loss,
    metrics: {
      "world.loss": loss,
      "world.tokens": counted(worldWeight, 1),
      "world.clipped": counted(worldWeight, sub(1, keptTokens(options))),
      "world.p": counted(worldWeight, p),
    },
    // What the mask leaves out has no gradient: nearly everything, once a model knows its world.
    ...(options.loss === "cmae" && { sparse: true }),
  };
}

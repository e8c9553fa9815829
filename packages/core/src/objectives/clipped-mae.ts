/**
 * Clipped MAE: MAE of the tokens that a mask keeps (PaW eq. 8).
 *
 *   m·(1 − p)       d/d log p = −m·p
 *
 * The mask m has no gradient, because comparisons have none. PaW eq. 7 keeps p ≤ ρ (`below`), what
 * the model does not know yet; the paper's §4.7 reads as if it kept the others, so there are also p
 * ≥ ρ (`above`) and p ≤ 1 − ρ (`margin`).
 */
import { z } from "zod";
import { type Expr, lessEqual, mul, sub } from "./expression.js";
import { type LossOptions, p, type WorldLoss } from "./world-loss.js";

const settings = {
  rho: z.number().min(0).max(1).default(0.2).describe("ρ: threshold of clipped MAE"),
  mask: z
    .enum(["below", "above", "margin"])
    .default("below")
    .describe("which tokens clipped MAE keeps: p ≤ ρ, p ≥ ρ, or p ≤ 1 − ρ"),
};

/** m: 1 if the token counts, else 0. */
function kept({ mask, rho }: LossOptions<typeof settings>): Expr {
  switch (mask) {
    case "below":
      return lessEqual(p, rho);
    case "above":
      return lessEqual(rho, p);
    case "margin":
      return lessEqual(p, 1 - rho);
  }
}

export const clippedMae: WorldLoss<typeof settings> = {
  title: "clipped MAE",
  settings,
  token: (options) => mul(kept(options), sub(1, p)),
  kept,
};

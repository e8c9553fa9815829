/**
 * The world-model losses, each the loss of one observation token. To add one, write it here, or in
 * a file beside this one, and add it to `worldLosses` (CONTRIBUTING.md).
 */

import { z } from "zod";
import { addedParts } from "../added-parts.js";
import { type Expr, lessEqual, logprob, mul, neg, type Objective, sub } from "./expression.js";
import { counted, weighted, worldWeight } from "./inputs.js";
import { checkExpression } from "./loss-plugin.js";
import { ALL, type LossOptions, lossesBySetting, p, type WorldLoss } from "./world-loss.js";

// Cross-entropy of the observation's token (PaW eq. 5).
//
//   −log p           d/d log p = −1

const crossEntropy: WorldLoss<Record<never, never>> = {
  title: "cross-entropy",
  settings: {},
  token: () => neg(logprob),
};

// Clipped MAE: MAE of the tokens that a mask keeps (PaW eq. 8).
//
//   m·(1 − p)       d/d log p = −m·p
//
// The mask m has no gradient, because comparisons have none. PaW eq. 7 keeps p ≤ ρ (`below`), what
// the model does not know yet; the paper's §4.7 reads as if it kept the others, so there are also p
// ≥ ρ (`above`) and p ≤ 1 − ρ (`margin`).

const clippedMaeSettings = {
  rho: z.number().min(0).max(1).default(0.2).describe("ρ: threshold of clipped MAE"),
  mask: z
    .enum(["below", "above", "margin"])
    .default("below")
    .describe("which tokens clipped MAE keeps: p ≤ ρ, p ≥ ρ, or p ≤ 1 − ρ"),
};

/** m: 1 if the token counts, else 0. */
function kept({ mask, rho }: LossOptions<typeof clippedMaeSettings>): Expr {
  switch (mask) {
    case "below":
      return lessEqual(p, rho);
    case "above":
      return lessEqual(rho, p);
    case "margin":
      return lessEqual(p, 1 - rho);
  }
}

const clippedMae: WorldLoss<typeof clippedMaeSettings> = {
  title: "clipped MAE",
  settings: clippedMaeSettings,
  token: (options) => mul(kept(options), sub(1, p)),
  kept,
};

// MAE of the observation's token: the probability it lacks (PaW eq. 6).
//
//   1 − p           d/d log p = −p

const mae: WorldLoss<Record<never, never>> = {
  title: "MAE",
  settings: {},
  token: () => sub(1, p),
};

/** In the order that help lists them; the first is the default. */
export const worldLosses = {
  cmae: clippedMae,
  mae,
  ce: crossEntropy,
};

type Losses = typeof worldLosses;
export type WorldLossName = keyof Losses;

/** The losses above and, after them, those of plugins. */
const allLosses = (): ReadonlyMap<string, WorldLoss> =>
  new Map([
    ...Object.entries(worldLosses as unknown as Readonly<Record<string, WorldLoss>>),
    ...addedParts<WorldLoss>("worldLosses"),
  ]);

/** The names of the losses; the first is the default. */
export function worldLossNames(): [WorldLossName, ...WorldLossName[]] {
  return [...allLosses().keys()] as [WorldLossName, ...WorldLossName[]];
}

/** What help calls them. */
export function worldLossTitles(): readonly string[] {
  return [...allLosses().values()].map(({ title }) => title);
}

type Together<U> = (U extends unknown ? (one: U) => void : never) extends (all: infer A) => void
  ? A
  : never;
type AllSettings = Together<Losses[WorldLossName]["settings"]>;

/** The settings of all losses together. */
export function lossSettings(): AllSettings {
  return Object.assign(
    {},
    ...[...allLosses().values()].map(({ settings }) => settings),
  ) as AllSettings;
}

/** The losses that have each setting. */
export function worldLossesBySetting(): ReadonlyMap<string, readonly string[]> {
  return lossesBySetting(allLosses());
}

/** How observations are learned: a loss, with the settings of all. */
export type WorldOptions = LossOptions<AllSettings> & { readonly loss: WorldLossName };

/** The loss that the options name. */
export function worldLossOf({ loss }: Pick<WorldOptions, "loss">): WorldLoss {
  return allLosses().get(loss)!;
}

/** The loss of one observation token, unweighted. */
export function worldTokenLoss(options: WorldOptions): Expr {
  const loss = worldLossOf(options).token(options);
  return checkExpression(`world-model loss "${options.loss}"`, loss, []);
}

/**
 * The world model's loss over observation tokens: predict what an action caused. The mean over tokens
 * and transitions (PaW eq. 9) and the balance λ (PaW eq. 11) are in `worldWeight`.
 */
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

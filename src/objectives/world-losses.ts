/**
 * The world-model losses by name. To add one, write a file beside these and add a line here
 * (CONTRIBUTING.md).
 */
import { clippedMae } from "./clipped-mae.js";
import { crossEntropy } from "./cross-entropy.js";
import { mae } from "./mae.js";
import type { LossOptions, WorldLoss } from "./world-loss.js";

/** In the order that help lists them; the first is the default. */
export const worldLosses = {
  cmae: clippedMae,
  mae,
  ce: crossEntropy,
};

type Losses = typeof worldLosses;
export type WorldLossName = keyof Losses;
export const worldLossNames = Object.keys(worldLosses) as [WorldLossName, ...WorldLossName[]];

type Together<U> = (U extends unknown ? (one: U) => void : never) extends (all: infer A) => void
  ? A
  : never;
type AllSettings = Together<Losses[WorldLossName]["settings"]>;

/** The settings of all losses together. */
export const lossSettings = Object.assign(
  {},
  ...Object.values(worldLosses).map(({ settings }) => settings),
) as AllSettings;

/** How observations are learned: a loss, with the settings of all. */
export type WorldOptions = LossOptions<AllSettings> & { readonly loss: WorldLossName };

/** The loss that the options name. */
export function worldLossOf({ loss }: Pick<WorldOptions, "loss">): WorldLoss {
  return worldLosses[loss] as unknown as WorldLoss;
}

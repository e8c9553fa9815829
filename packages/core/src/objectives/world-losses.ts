/**
 * The world-model losses by name. To add one, write a file beside these and add a line here
 * (CONTRIBUTING.md).
 */
import { addedParts } from "../added-parts.js";
import { clippedMae } from "./clipped-mae.js";
import { crossEntropy } from "./cross-entropy.js";
import { mae } from "./mae.js";
import { type LossOptions, lossesBySetting, type WorldLoss } from "./world-loss.js";

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

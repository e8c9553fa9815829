/** Mean and standard deviation of the values of a group. */
import { z } from "zod";

/** One number per step of one group: episodes × steps. A broken episode has no steps here. */
export type StepTable = readonly (readonly number[])[];

/**
 * What a group's statistics are taken over: every step, so that long episodes weigh more (as in the
 * reference implementation), or one value per episode, the mean over its steps.
 */
export type StatisticsUnit = "step" | "episode";

/** The setting for it. */
export const perSetting = z
  .enum(["step", "episode"])
  .default("step")
  .describe(
    "group statistics over all steps, or one value per episode; rloo also: other-episodes, its default",
  );

/** What a normalised value is divided by: the group's standard deviation, or nothing. */
export type Normalisation = "mean-std" | "mean";

/** The setting for it. */
export const normSetting = z
  .enum(["mean-std", "mean"])
  .default("mean-std")
  .describe("divide by the standard deviation, or only subtract the mean");

/** Keeps the division finite if all values are equal; from the reference implementation. */
const EPSILON = 1e-6;

/** The mean; 0 for an empty list. */
export function mean(values: readonly number[]): number {
  const origin = values[0] ?? 0;
  let total = 0;
  // Relative to the first value, so that equal values have a variance of exactly 0.
  for (const value of values) total += value - origin;
  return origin + total / Math.max(values.length, 1);
}

/** The variance with the unbiased denominator n − 1; 0 for fewer than two values. */
export function variance(values: readonly number[]): number {
  if (values.length < 2) return 0;
  const center = mean(values);
  let total = 0;
  for (const value of values) total += (value - center) ** 2;
  return total / (values.length - 1);
}

/** A function from a value to its distance from the mean, in standard deviations. */
export function normaliser(values: readonly number[], by: Normalisation): (x: number) => number {
  const center = mean(values);
  const scale = by === "mean" ? 1 : Math.sqrt(variance(values)) + EPSILON;
  return (x) => (x - center) / scale;
}

/** The values that a group's statistics are taken over; episodes without steps have none. */
export function statisticsOver(table: StepTable, per: StatisticsUnit): readonly number[] {
  return per === "step" ? table.flat() : table.filter((steps) => steps.length > 0).map(mean);
}

/** Applies a function to each step's number. */
export function mapSteps(table: StepTable, change: (x: number) => number): StepTable {
  return table.map((steps) => steps.map(change));
}

/** Figures as pages write them. */
import type { Estimate } from "@pawl/studies/statistics.js";

export const number = (value: number, places = 1): string =>
  value.toFixed(places).replace("-", "−");
export const signed = (value: number): string => `${value > 0 ? "+" : ""}${number(value)}`;
/** A difference, with its interval if there is one. */
export const withInterval = ({ mean, interval }: Estimate): string =>
  `${signed(mean)}${interval === undefined ? "" : ` (${interval.map((end) => number(end)).join(" to ")})`}`;

/** Figures as pages write them. */
import type { Estimate } from "@pawl/studies/statistics.js";

export const number = (value: number, places = 1): string =>
  value.toFixed(places).replace("-", "−");
export const signed = (value: number, places = 1): string =>
  `${value > 0 ? "+" : ""}${number(value, places)}`;
/** A difference, with its interval if there is one. */
export const withInterval = ({ mean, interval }: Estimate, places = 1): string =>
  `${signed(mean, places)}${interval === undefined ? "" : ` (${interval.map((end) => number(end, places)).join(" to ")})`}`;

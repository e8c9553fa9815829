/** NaN or infinity among the numbers of an update. */
import type { Alarm } from "./alarm.js";

/** Metrics that were not finite are recorded under this prefix: JSON has no NaN. */
const NOT_FINITE = "notFinite.";

/** Raised when learning produced a number that is not finite. */
export const nanAlarm: Alarm = {
  name: "nan",
  summary: "a loss, gradient or metric is NaN or infinite",
  reads: [],
  check(lines) {
    const names = Object.keys(lines.at(-1) ?? {})
      .filter((name) => name.startsWith(NOT_FINITE))
      .map((name) => name.slice(NOT_FINITE.length));
    return names.length === 0 ? undefined : `not finite: ${names.join(", ")}`;
  },
};

/**
 * Whether an engine stopped because a number was not finite. Engines refuse such a loss or gradient
 * before it reaches the weights; those on servers say so in words only.
 */
export function saysNotFinite(message: string): boolean {
  return /\bis not finite\b|\bis (nan|-?inf(inity)?)\b|expected a finite number/i.test(message);
}

/** Marks numbers that are not finite, which a line of metrics cannot hold. */
export function markNotFinite(numbers: Readonly<Record<string, number>>): Record<string, number> {
  return Object.fromEntries(
    Object.entries(numbers)
      .filter(([, value]) => !Number.isFinite(value))
      .map(([name]) => [`${NOT_FINITE}${name}`, 1]),
  );
}

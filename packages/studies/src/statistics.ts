/** Means over seeds with their uncertainty, and paired differences between arms. */
import { spreadOf } from "@pawl/ui/report/thin.js";

/**
 * Mean, sample standard deviation and 95 % interval of the mean (Student's t; none for a single
 * value).
 */
export interface Estimate {
  readonly mean: number;
  readonly n: number;
  readonly deviation?: number;
  readonly interval?: readonly [low: number, high: number];
}

/** Estimates a mean from independent values. */
export function estimate(values: readonly number[]): Estimate {
  const { mean, deviation, count: n } = spreadOf(values);
  return n < 2 ? { mean, n } : withInterval(mean, n, deviation);
}

/** The mean of value − reference over the seeds that have both; undefined if there are none. */
export function pairedDifference(
  values: ReadonlyMap<number, number>,
  reference: ReadonlyMap<number, number>,
): Estimate | undefined {
  const differences = [...values].flatMap(([seed, value]) =>
    reference.has(seed) ? [value - reference.get(seed)!] : [],
  );
  return differences.length === 0 ? undefined : estimate(differences);
}

/** The estimate from all the values that these were made of, without the values. */
export function pooled(parts: readonly Estimate[]): Estimate {
  const n = parts.reduce((sum, part) => sum + part.n, 0);
  const mean = parts.reduce((sum, part) => sum + part.n * part.mean, 0) / n;
  if (n < 2) return { mean, n };
  const squares = parts.reduce(
    (sum, part) =>
      sum + (part.n - 1) * (part.deviation ?? 0) ** 2 + part.n * (part.mean - mean) ** 2,
    0,
  );
  return withInterval(mean, n, Math.sqrt(squares / (n - 1)));
}

function withInterval(mean: number, n: number, deviation: number): Estimate {
  const reach = (studentT(n - 1) * deviation) / Math.sqrt(n);
  return { mean, n, deviation, interval: [mean - reach, mean + reach] };
}

// 97.5 % quantiles of Student's t for 1 to 30 degrees of freedom.
const QUANTILES = [
  12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.16, 2.145,
  2.131, 2.12, 2.11, 2.101, 2.093, 2.086, 2.08, 2.074, 2.069, 2.064, 2.06, 2.056, 2.052, 2.048,
  2.045, 2.042,
];

/** Beyond the table: the first terms of the quantile's expansion in 1 / freedom. */
function studentT(freedom: number): number {
  const z = 1.959964;
  return QUANTILES[freedom - 1] ?? z + (z ** 3 + z) / (4 * freedom);
}

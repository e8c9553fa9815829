/** Intervals and tests for success rates, of one evaluation and of two on the same tasks. */
import { createRandom } from "@pawl/core/random.js";
import { successInterval } from "@pawl/core/success-interval.js";

/** A 95 % interval. */
export type Interval = readonly [low: number, high: number];

/** Enough that the ends of an interval move by less than a tenth of its width. */
const RESAMPLES = 10_000;

/** Words for the intervals, for cards. */
export const METHODS = {
  wilson: "Wilson's score interval over tasks, 95 %",
  bootstrap: `bootstrap over tasks, 95 %, ${RESAMPLES} resamples`,
  paired: "Newcombe's interval for paired proportions (method 10), 95 %",
} as const;

/**
 * The 95 % interval of a mean over tasks: tasks are drawn anew with replacement, and the attempts at
 * a task stay together. The same values give the same interval.
 */
export function bootstrapInterval(values: readonly number[]): Interval {
  const random = createRandom(0);
  const means = Float64Array.from({ length: RESAMPLES }, () => {
    let sum = 0;
    for (let i = 0; i < values.length; i++) sum += values[random.int(values.length)]!;
    return sum / values.length;
  }).sort();
  return [means[Math.floor(0.025 * RESAMPLES)]!, means[Math.ceil(0.975 * RESAMPLES) - 1]!];
}

/** How often both succeeded, only the first, only the second, and neither. */
export interface Pairs {
  readonly both: number;
  readonly first: number;
  readonly second: number;
  readonly neither: number;
}

/**
 * The 95 % interval of the first rate minus the second on the same tasks: Wilson's intervals of both,
 * joined with the correlation of the outcomes (Newcombe 1998, Statistics in Medicine 17:2635, method
 * 10). Unlike a bootstrap it has a width where no outcomes differ.
 */
export function pairedInterval({ both, first, second, neither }: Pairs): Interval {
  const tasks = both + first + second + neither;
  const [p, q] = [(both + first) / tasks, (both + second) / tasks];
  const [pLow, pHigh] = successInterval({ successes: both + first, episodes: tasks });
  const [qLow, qHigh] = successInterval({ successes: both + second, episodes: tasks });
  const spread = (both + first) * (second + neither) * (both + second) * (first + neither);
  const excess = both * neither - first * second;
  const corrected = excess > 0 ? Math.max(0, excess - tasks / 2) : excess;
  const correlation = spread === 0 ? 0 : corrected / Math.sqrt(spread);
  const reach = (a: number, b: number): number =>
    Math.sqrt(Math.max(0, a ** 2 - 2 * correlation * a * b + b ** 2));
  return [
    Math.max(-1, p - q - reach(p - pLow, qHigh - q)),
    Math.min(1, p - q + reach(pHigh - p, q - qLow)),
  ];
}

/**
 * The two-sided p-value of the exact sign test: how likely so uneven a division of the tasks that
 * differ would be if either side were equally likely to win one. With one attempt at each task it is
 * McNemar's exact test.
 */
export function signTest(wins: number, losses: number): number {
  const tasks = wins + losses;
  if (tasks === 0) return 1;
  // log C(n, k) − n log 2, term by term, so that large numbers do not overflow.
  let log = -tasks * Math.LN2;
  let sum = 0;
  for (let k = 0; k <= Math.min(wins, losses); k++) {
    sum += Math.exp(log);
    log += Math.log((tasks - k) / (k + 1));
  }
  return Math.min(1, 2 * sum);
}

/** A metric over the training of a group of runs. */
import type { RunGroup } from "./run-groups.js";

/** Mean, spread (standard deviation over runs, NaN for one) and number of runs. */
export interface Spread {
  readonly mean: number;
  readonly deviation: number;
  readonly count: number;
}

/** A point of a curve, after `x` updates. */
export interface Point extends Spread {
  readonly x: number;
}

/** A named curve. */
export interface Series {
  readonly label: string;
  readonly points: readonly Point[];
}

/** One metric in each group; x is the number of updates, so the start is 0. */
export function seriesOf(groups: readonly RunGroup[], metric: string): readonly Series[] {
  return groups.map(({ label, runs }) => {
    const values = new Map<number, number[]>();
    for (const { metrics } of runs) {
      for (const line of metrics) {
        const value = line[metric];
        if (value === undefined || !Number.isFinite(value)) continue;
        const x = (line.update ?? 0) + 1;
        values.set(x, [...(values.get(x) ?? []), value]);
      }
    }
    const points = [...values]
      .sort(([a], [b]) => a - b)
      .map(([x, all]) => ({ x, ...spreadOf(all) }));
    return { label, points };
  });
}

/** Mean and sample standard deviation. */
export function spreadOf(values: readonly number[]): Spread {
  const count = values.length;
  const mean = values.reduce((sum, value) => sum + value, 0) / count;
  const squares = values.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  return { mean, deviation: count > 1 ? Math.sqrt(squares / (count - 1)) : Number.NaN, count };
}

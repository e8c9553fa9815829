/** Long runs thinned to what a chart can show: means of neighbouring updates, and their range. */

import type { MetricsLine } from "@pawl/core/runs/metrics-file.js";
import type { MetricsColumns } from "./views.js";

/** Points that a chart of usual width tells apart as a line. */
const MOST_POINTS = 160;

/**
 * The same columns with at most `most` rows. Each row is the mean of as many neighbours, and
 * `bands` their smallest and largest values. Evaluations are not averaged: the first row keeps the
 * first one, the others their last.
 */
export function thinned(table: MetricsColumns, most = MOST_POINTS): MetricsColumns {
  const { update, columns } = table;
  const every = Math.ceil(update.length / most);
  if (every <= 1) return table;
  const starts = Array.from({ length: Math.ceil(update.length / every) }, (_, i) => i * every);
  const rows = starts.map((from) => [from, Math.min(from + every, update.length)] as const);
  const thin: Record<string, readonly (number | null)[]> = Object.create(null);
  const bands: Record<string, Band> = Object.create(null);
  for (const [name, values] of Object.entries(columns)) {
    const parts = rows.map(([from, to]) => summaryOf(values, from, to));
    if (name.startsWith("eval.")) {
      thin[name] = parts.map((part, i) => (i === 0 ? part?.first : part?.last) ?? null);
      continue;
    }
    thin[name] = parts.map((part) => (part === undefined ? null : rounded(part.sum / part.count)));
    bands[name] = {
      low: parts.map((part) => part?.low ?? null),
      high: parts.map((part) => part?.high ?? null),
    };
  }
  return { update: rows.map(([, to]) => update[to - 1]!), columns: thin, bands, every };
}

/** What there is of a part of a column, in one pass; undefined if there is nothing. */
function summaryOf(values: readonly (number | null)[], from: number, to: number) {
  let found: Record<"first" | "last" | "sum" | "count" | "low" | "high", number> | undefined;
  for (let i = from; i < to; i++) {
    const value = values[i] ?? null;
    if (value === null) continue;
    found ??= { first: value, last: value, sum: 0, count: 0, low: value, high: value };
    found.last = value;
    found.sum += value;
    found.count += 1;
    if (value < found.low) found.low = value;
    if (value > found.high) found.high = value;
  }
  return found;
}

type Band = NonNullable<MetricsColumns["bands"]>[string];

const POWERS = Array.from({ length: 13 }, (_, power) => 10 ** power);

/** To 7 digits, more than a chart or a table shows: by arithmetic where that is exact, as it is much faster. */
function rounded(value: number): number {
  if (Number.isInteger(value)) return value;
  const size = Math.abs(value);
  if (size < 1e-6 || size >= 1e6) return Number(value.toPrecision(7));
  const scale = POWERS[6 - Math.floor(Math.log10(size))]!;
  return Math.round(value * scale) / scale;
}

/** The columns of some lines; `wanted` restricts the names. */
export function columnsOf(
  lines: readonly MetricsLine[],
  wanted: (name: string) => boolean = () => true,
): MetricsColumns {
  const columns = new Map<string, (number | null)[]>();
  for (const [row, line] of lines.entries()) {
    for (const name in line) {
      const value = line[name];
      if (name === "update" || typeof value !== "number" || !wanted(name)) continue;
      let column = columns.get(name);
      if (column === undefined) {
        column = new Array<number | null>(lines.length).fill(null);
        columns.set(name, column);
      }
      column[row] = rounded(value);
    }
  }
  return {
    update: lines.map(({ update = 0 }) => update),
    columns: Object.fromEntries(columns),
  };
}

/** Means with their spread. */

/** Mean, spread (standard deviation over runs, NaN for one) and number of runs. */
export interface Spread {
  readonly mean: number;
  readonly deviation: number;
  readonly count: number;
}

/** Mean and sample standard deviation. */
export function spreadOf(values: readonly number[]): Spread {
  const count = values.length;
  const mean = values.reduce((sum, value) => sum + value, 0) / count;
  const squares = values.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  return { mean, deviation: count > 1 ? Math.sqrt(squares / (count - 1)) : Number.NaN, count };
}

/** Metrics of runs as lines: mean and band over the runs of a group, smoothed, on a chosen axis. */
import { spreadOf } from "@pawl/ui/report/thin.js";
import type { MetricsColumns } from "@pawl/ui/report/views.js";
import type { Line } from "./chart.js";

/** What is on the x axis. */
export type Axis = "update" | "tokens" | "seconds";
export const AXES: Readonly<Record<Axis, string>> = {
  update: "update",
  tokens: "million tokens",
  seconds: "minutes",
};

/** Runs that are shown as one line. */
export interface TableGroup {
  readonly label: string;
  readonly tables: readonly MetricsColumns[];
}

/** Points of a line over a group whose runs have no x in common. */
const GRID = 300;

interface Course {
  readonly x: readonly number[];
  readonly y: readonly number[];
}

/** The x of every line of a table: updates done, tokens learnt from, time. */
export function axisOf(
  { update, columns, every = 1 }: MetricsColumns,
  axis: Axis,
): readonly number[] {
  if (axis === "update") return update.map((n) => n + 1);
  const parts = Object.entries(columns).filter(([name]) =>
    axis === "tokens" ? name === "train.tokens" : name.startsWith("seconds."),
  );
  const unit = axis === "tokens" ? 1e6 : 60;
  let sum = 0;
  return update.map((_, i) => {
    for (const [, values] of parts) sum += (every * (values[i] ?? 0)) / unit;
    return sum;
  });
}

function courseOf(table: MetricsColumns, metric: string, axis: Axis, smoothing: number): Course {
  const values = table.columns[metric] ?? [];
  const places = axisOf(table, axis);
  const x: number[] = [];
  const y: number[] = [];
  let mean = 0;
  let weight = 0;
  for (const [i, value] of values.entries()) {
    if (value === null) continue;
    // An exponential mean, corrected for its start.
    mean = smoothing * mean + (1 - smoothing) * value;
    weight = smoothing * weight + (1 - smoothing);
    x.push(places[i]!);
    y.push(mean / weight);
  }
  return { x, y };
}

/** One line per group, over a common x. */
export function linesOf(
  groups: readonly TableGroup[],
  metric: string,
  axis: Axis = "update",
  smoothing = 0,
): { readonly x: readonly number[]; readonly lines: readonly Line[] } {
  const courses = groups.map(({ tables }) =>
    tables.map((table) => courseOf(table, metric, axis, smoothing)).filter(({ x }) => x.length > 0),
  );
  const alone = courses.every((group) => group.length <= 1);
  const shared = axis === "update" || alone;
  const all = courses.flat().flatMap(({ x }) => x as number[]);
  const xs = shared ? [...new Set(all)].sort((a, b) => a - b) : gridOver(all);
  const lines = courses.map((group, i): Line => {
    const rows = group.map((course) => (shared ? exactly(course, xs) : between(course, xs)));
    const label = groups[i]!.label;
    if (rows.length <= 1) {
      const y = rows[0] ?? xs.map(() => null);
      const table = groups[i]!.tables.find(({ columns }) => columns[metric] !== undefined);
      const range = table?.bands?.[metric];
      // What was thinned shows its range, what is smoothed the values themselves.
      const pale =
        range !== undefined && alone && groups.length === 1
          ? { low: range.low, high: range.high, every: table!.every! }
          : smoothing > 0 && table !== undefined
            ? { raw: exactly(courseOf(table, metric, axis, 0), xs) }
            : {};
      return { label, y, ...pale, colour: i, runs: rows.length };
    }
    const spread = xs.map((_, at) => {
      const values = rows.flatMap((row) => row[at] ?? []);
      return values.length === 0 ? undefined : spreadOf(values);
    });
    const edge = (sign: number) =>
      spread.map((one) =>
        one === undefined || one.count < 2 ? null : one.mean + sign * one.deviation,
      );
    return {
      label,
      y: spread.map((one) => one?.mean ?? null),
      low: edge(-1),
      high: edge(1),
      runs: rows.length,
      colour: i,
    };
  });
  return { x: xs, lines };
}

function gridOver(all: readonly number[]): readonly number[] {
  let [low, high] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (const x of all) {
    if (x < low) low = x;
    if (x > high) high = x;
  }
  if (!(high > low)) return all.length === 0 ? [] : [low];
  return Array.from({ length: GRID }, (_, i) => low + ((high - low) * i) / (GRID - 1));
}

function exactly({ x, y }: Course, xs: readonly number[]): readonly (number | null)[] {
  const values = new Map(x.map((place, i) => [place, y[i]!]));
  return xs.map((place) => values.get(place) ?? null);
}

/** Straight between neighbours; nothing outside of what was measured. */
function between({ x, y }: Course, xs: readonly number[]): readonly (number | null)[] {
  let at = 0;
  return xs.map((place) => {
    while (at + 1 < x.length && x[at + 1]! <= place) at++;
    if (place < x[0]! || place > x.at(-1)!) return null;
    if (at + 1 >= x.length || x[at + 1] === x[at]) return y[at]!;
    const share = (place - x[at]!) / (x[at + 1]! - x[at]!);
    return y[at]! + share * (y[at + 1]! - y[at]!);
  });
}

/** The last value of a metric in a table. */
export function lastOf({ columns }: MetricsColumns, metric: string): number | undefined {
  return columns[metric]?.findLast((value) => value !== null) ?? undefined;
}

/** The first value of a metric in a table. */
export function firstOf({ columns }: MetricsColumns, metric: string): number | undefined {
  return columns[metric]?.find((value) => value !== null) ?? undefined;
}

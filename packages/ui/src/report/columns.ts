/** Lines of metrics as columns. */
import type { MetricsLine } from "@pawl/core/runs/metrics-file.js";
import type { MetricsColumns } from "./views.js";

/** The columns of some lines; `wanted` restricts the names. */
export function columnsOf(
  lines: readonly MetricsLine[],
  wanted: (name: string) => boolean = () => true,
): MetricsColumns {
  const columns: Record<string, (number | null)[]> = Object.create(null);
  for (const [row, line] of lines.entries()) {
    for (const [name, value] of Object.entries(line)) {
      if (name === "update" || typeof value !== "number" || !wanted(name)) continue;
      columns[name] ??= new Array<number | null>(lines.length).fill(null);
      columns[name][row] = rounded(value);
    }
  }
  return { update: lines.map(({ update = 0 }) => update), columns };
}

/** More digits than a chart or a table shows. */
const rounded = (value: number): number => Number(value.toPrecision(7));

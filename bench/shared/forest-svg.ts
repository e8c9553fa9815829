/** Estimates with their intervals, one below the other, as an SVG file of its own. */
import type { Estimate } from "@pawl/studies/statistics.js";
import { escapeHtml, linearScale } from "@pawl/ui/report/scale.js";

/** An estimate; without an interval it is a point. */
type Shown = Pick<Estimate, "mean"> & { readonly interval: Estimate["interval"] | undefined };

/** One row: the same thing measured in several ways. */
export interface ForestRow {
  readonly label: string;
  /** Rows of one group follow each other under its name. */
  readonly group: string;
  readonly estimates: readonly (Shown | undefined)[];
}

const WIDTH = 760;
const PLOT = { left: 230, right: WIDTH - 20, top: 66 } as const;
const ROW = 26;
/** Distinguishable with colour blindness (Okabe and Ito). */
const COLOURS = ["#0072b2", "#e69f00"];
/** What is beyond is drawn with an arrow. */
const RANGE = [-45, 45] as const;

/** The drawing; `kinds` names what a row's estimates are. */
export function forestSvg(
  title: string,
  rows: readonly ForestRow[],
  kinds: readonly string[],
): string {
  const x = linearScale(RANGE, [PLOT.left, PLOT.right]);
  const inside = (value: number): number => x(Math.min(RANGE[1], Math.max(RANGE[0], value)));
  let y = PLOT.top;
  const body: string[] = [];
  let group = "";
  for (const row of rows) {
    if (row.group !== group) {
      group = row.group;
      y += ROW;
      body.push(`<text x="16" y="${y + 4}" font-weight="bold">${escapeHtml(group)}</text>`);
    }
    y += ROW;
    body.push(`<text x="28" y="${y + 4}">${escapeHtml(row.label)}</text>`);
    for (const [kind, one] of row.estimates.entries())
      if (one !== undefined) body.push(mark(one, kind, y + (kind === 0 ? -4 : 5), inside));
  }
  const bottom = y + ROW / 2;
  const grid = [-40, -30, -20, -10, 0, 10, 20, 30, 40].map(
    (value) =>
      `<line x1="${at(x(value))}" x2="${at(x(value))}" y1="${PLOT.top}" y2="${bottom}" stroke="${value === 0 ? "#555" : "#ddd"}"/><text x="${at(x(value))}" y="${bottom + 18}" text-anchor="middle">${String(value).replace("-", "−")}</text>`,
  );
  const legend = kinds.map(
    (kind, i) =>
      `<circle cx="${24 + 280 * i}" cy="44" r="4" fill="${COLOURS[i]}"/><text x="${34 + 280 * i}" y="48">${escapeHtml(kind)}</text>`,
  );
  const height = bottom + 32;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" font-family="sans-serif" font-size="12">`,
    `<title>${escapeHtml(title)}</title>`,
    `<rect width="${WIDTH}" height="${height}" fill="#fff"/>`,
    `<text x="16" y="24" font-size="14" font-weight="bold">${escapeHtml(title)}</text>`,
    ...legend,
    ...grid,
    ...body,
    "</svg>",
    "",
  ].join("\n");
}

function mark({ mean, interval }: Shown, kind: number, y: number, x: (value: number) => number) {
  const colour = COLOURS[kind];
  const line =
    interval === undefined
      ? ""
      : `<line x1="${at(x(interval[0]))}" x2="${at(x(interval[1]))}" y1="${y}" y2="${y}" stroke="${colour}" stroke-width="2"/>`;
  const ends = (interval ?? []).flatMap((end) =>
    end < RANGE[0] || end > RANGE[1]
      ? `<text x="${at(x(end))}" y="${y + 4}" fill="${colour}" text-anchor="middle">${end < 0 ? "◂" : "▸"}</text>`
      : [],
  );
  return `${line}${ends.join("")}<circle cx="${at(x(mean))}" cy="${y}" r="4" fill="${colour}"/>`;
}

const at = (value: number): string => value.toFixed(1);

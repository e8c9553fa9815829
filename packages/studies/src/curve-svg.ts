/** Success during training as an SVG file of its own: a line per arm, bands of one deviation. */
import { escapeHtml, linearScale, wholeTicks } from "@pawl/ui/report/scale.js";
import type { Estimate } from "./statistics.js";

/** A curve: estimates by number of updates. */
export interface Curve {
  readonly label: string;
  readonly points: Readonly<Record<number, Estimate>>;
}

const WIDTH = 720;
const PLOT = { left: 52, right: WIDTH - 16, top: 34, bottom: 300 } as const;
const LEGEND = { top: 344, line: 20, columns: 3 } as const;
/** Distinguishable with colour blindness (Okabe and Ito). */
const COLOURS = ["#000000", "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"];
/** More arms than colours: the lines are dashed. */
const DASHES = ["", "6 3", "2 3"];

/** The drawing, or undefined if no arm was evaluated during training. */
export function curveSvg(title: string, curves: readonly Curve[]): string | undefined {
  const xs = curves.flatMap(({ points }) => Object.keys(points).map(Number));
  if (xs.length === 0) return undefined;
  const range = [Math.min(...xs), Math.max(...xs)] as const;
  const x = linearScale(range, [PLOT.left, PLOT.right]);
  const y = linearScale([0, 1], [PLOT.bottom, PLOT.top]);
  const rows = Math.ceil(curves.length / LEGEND.columns);
  const height = LEGEND.top + rows * LEGEND.line;
  const grid = [0, 0.2, 0.4, 0.6, 0.8, 1].map(
    (share) =>
      `<line x1="${PLOT.left}" x2="${PLOT.right}" y1="${at(y(share))}" y2="${at(y(share))}" stroke="#ddd"/><text x="${PLOT.left - 8}" y="${at(y(share) + 4)}" text-anchor="end">${100 * share} %</text>`,
  );
  const marks = wholeTicks(range, 8).map(
    (updates) =>
      `<text x="${at(x(updates))}" y="${PLOT.bottom + 20}" text-anchor="middle">${updates}</text>`,
  );
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" font-family="sans-serif" font-size="13">`,
    `<title>${escapeHtml(title)}</title>`,
    `<rect width="${WIDTH}" height="${height}" fill="#fff"/>`,
    `<text x="${PLOT.left}" y="20" font-weight="bold">${escapeHtml(title)}</text>`,
    ...grid,
    ...marks,
    `<text x="${PLOT.right}" y="${PLOT.bottom + 36}" text-anchor="end">updates</text>`,
    ...curves.map((curve, i) => line(curve, i, x, y)),
    ...curves.map(({ label }, i) => legend(label, i)),
    "</svg>",
    "",
  ].join("\n");
}

type Scale = (value: number) => number;

function line({ points }: Curve, index: number, x: Scale, y: Scale): string {
  const { colour, dash } = lookOf(index);
  const all = Object.entries(points)
    .map(([updates, { mean, deviation = 0 }]) => ({ updates: Number(updates), mean, deviation }))
    .sort((a, b) => a.updates - b.updates);
  const share = (value: number): number => y(Math.min(1, Math.max(0, value)));
  const path = (of: readonly (readonly [number, number])[]): string =>
    of.map(([px, py]) => `${at(px)},${at(py)}`).join(" ");
  const edge = (sign: number) =>
    all.map(
      ({ updates, mean, deviation }) => [x(updates), share(mean + sign * deviation)] as const,
    );
  const middle = path(all.map(({ updates, mean }) => [x(updates), share(mean)]));
  return [
    `<polygon points="${path([...edge(1), ...edge(-1).reverse()])}" fill="${colour}" opacity="0.1"/>`,
    `<polyline points="${middle}" fill="none" stroke="${colour}" stroke-width="2"${dash}/>`,
    ...all.map(
      (p) =>
        `<circle cx="${at(x(p.updates))}" cy="${at(share(p.mean))}" r="2.5" fill="${colour}"/>`,
    ),
  ].join("");
}

function legend(label: string, index: number): string {
  const { colour, dash } = lookOf(index);
  const width = (PLOT.right - PLOT.left) / LEGEND.columns;
  const left = PLOT.left + (index % LEGEND.columns) * width;
  const middle = LEGEND.top + Math.floor(index / LEGEND.columns) * LEGEND.line;
  return `<line x1="${left}" x2="${left + 24}" y1="${middle}" y2="${middle}" stroke="${colour}" stroke-width="2"${dash}/><text x="${left + 30}" y="${middle + 4}">${escapeHtml(label)}</text>`;
}

function lookOf(index: number): { readonly colour: string; readonly dash: string } {
  const dash = DASHES[Math.floor(index / COLOURS.length) % DASHES.length]!;
  return {
    colour: COLOURS[index % COLOURS.length]!,
    dash: dash === "" ? "" : ` stroke-dasharray="${dash}"`,
  };
}

const at = (value: number): string => String(Math.round(value * 10) / 10);

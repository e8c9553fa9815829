/**
 * A line chart as inline SVG: axes, mean lines, bands of one standard deviation, and data for a
 * read-out.
 */
import { type Html, html } from "./html.js";
import { innerTicks, linearScale, shortNumber, shortPercent, ticks, wholeTicks } from "./scale.js";
import type { Point, Series } from "./series.js";

/** The contents of a chart. */
export interface ChartOptions {
  readonly title: string;
  /** What the number means, in a few words. */
  readonly note: string;
  readonly series: readonly Series[];
  /** A fraction between 0 and 1. */
  readonly percent?: boolean;
  /** Few points, far apart: each gets a dot. */
  readonly dots?: boolean;
  /** The meaning of x if it is not a number of updates; it may then be any number. */
  readonly xLabel?: string;
}

const WIDTH = 520;
const HEIGHT = 230;
const PLOT = { left: 60, right: WIDTH - 14, top: 12, bottom: HEIGHT - 30 } as const;
/** As many as the style sheet has. */
const COLOURS = 8;

/** The colour of the n-th group, as a class of the style sheet. */
export const colourClass = (index: number): string => `c${index % COLOURS}`;

/** The chart with its title, or nothing if no series has a point. */
export function chart(options: ChartOptions): Html | undefined {
  const { title, note, series, percent = false, dots = false, xLabel } = options;
  const all = series.flatMap(({ points }) => points);
  if (all.length === 0) return undefined;
  const yTicks = percent ? [0, 0.25, 0.5, 0.75, 1] : ticks(heightOf(all), 4);
  const xs = [...new Set(all.map(({ x }) => x))].sort((a, b) => a - b);
  const xDomain = [Math.min(...xs), Math.max(...xs)] as const;
  const x = linearScale(xDomain, [PLOT.left, PLOT.right]);
  const y = linearScale([yTicks[0]!, yTicks.at(-1)!], [PLOT.bottom, PLOT.top]);
  const format = percent ? shortPercent : shortNumber;
  const xTicks = xLabel === undefined ? wholeTicks(xDomain, 6) : innerTicks(xDomain, 6);

  const grid = yTicks.map(
    (
      value,
    ) => html`<line class="grid" x1="${PLOT.left}" x2="${PLOT.right}" y1="${at(y(value))}" y2="${at(y(value))}"/>
<text class="tick" x="${PLOT.left - 8}" y="${at(y(value) + 4)}" text-anchor="end">${format(value)}</text>`,
  );
  const marks = xTicks.map(
    (value) =>
      html`<text class="tick" x="${at(x(value))}" y="${PLOT.bottom + 20}" text-anchor="middle">${shortNumber(value)}</text>`,
  );
  const curves = series.map(({ points }, index) => {
    if (points.length === 0) return "";
    const circles = dots || points.length === 1 ? points : [];
    return html`<g class="${colourClass(index)}">${band(points, x, y)}
<path class="line" d="${path(points.map((point) => [x(point.x), y(point.mean)]))}"/>
${circles.map((p) => html`<circle class="dot" cx="${at(x(p.x))}" cy="${at(y(p.mean))}" r="3"/>`)}</g>`;
  });
  const readout = {
    width: WIDTH,
    x: xs,
    at: xs.map((value) => Math.round(x(value) * 10) / 10),
    series: series.map(({ label, points }, index) => ({
      label,
      colour: colourClass(index),
      values: xs.map((value) => describe(points, value, format)),
    })),
  };
  return html`<figure class="chart" data-chart="${JSON.stringify(readout)}">
<figcaption><strong>${title}</strong> <span>${note}</span></figcaption>
<svg viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" tabindex="0" aria-label="${summary(title, series, format)}">
${grid}${marks}<text class="tick" x="${PLOT.left - 8}" y="${PLOT.bottom + 20}" text-anchor="end">${xLabel ?? "update"}</text>
<line class="axis" x1="${PLOT.left}" x2="${PLOT.right}" y1="${PLOT.bottom}" y2="${PLOT.bottom}"/>
<line class="cursor" y1="${PLOT.top}" y2="${PLOT.bottom}" visibility="hidden"/>
${curves}
</svg>
<div class="readout" aria-live="polite" hidden></div>
</figure>`;
}

/** The range including the bands; starts at 0 unless that flattens the curves. */
function heightOf(points: readonly Point[]): readonly [number, number] {
  const reach = ({ deviation }: Point) => (Number.isFinite(deviation) ? deviation : 0);
  const low = Math.min(...points.map((point) => point.mean - reach(point)));
  const high = Math.max(...points.map((point) => point.mean + reach(point)));
  return low > 0 && low < 0.6 * high ? [0, high] : [low, high];
}

type Scale = (value: number) => number;

function band(points: readonly Point[], x: Scale, y: Scale): Html | string {
  const spread = points.filter(({ deviation }) => Number.isFinite(deviation));
  if (spread.length < 2) return "";
  const clamp = (value: number) => Math.min(PLOT.bottom, Math.max(PLOT.top, value));
  const upper = spread.map((p) => [x(p.x), clamp(y(p.mean + p.deviation))] as const);
  const lower = spread.map((p) => [x(p.x), clamp(y(p.mean - p.deviation))] as const).reverse();
  return html`<path class="band" d="${path([...upper, ...lower])}Z"/>`;
}

function path(points: readonly (readonly [number, number])[]): string {
  return points.map(([x, y], i) => `${i === 0 ? "M" : "L"}${at(x)} ${at(y)}`).join("");
}

/** A coordinate to a tenth of a unit: more digits only make the file longer. */
const at = (value: number): string => String(Math.round(value * 10) / 10);

function describe(points: readonly Point[], x: number, format: (v: number) => string): string {
  const point = points.find((candidate) => candidate.x === x);
  if (point === undefined) return "";
  const { mean, deviation, count } = point;
  return count > 1 ? `${format(mean)} ± ${format(deviation)} (n ${count})` : format(mean);
}

function summary(title: string, series: readonly Series[], format: (v: number) => string): string {
  const ends = series.flatMap(({ label, points }) => {
    const [first, last] = [points[0], points.at(-1)];
    if (first === undefined || last === undefined) return [];
    return [`${label}: ${format(first.mean)} at ${first.x}, ${format(last.mean)} at ${last.x}`];
  });
  return `${title}. ${ends.join("; ")}`;
}

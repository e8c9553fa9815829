/**
 * The page of `pawl wm threshold`: the distances of correct and wrong states, and what a threshold
 * does.
 */
import { type LabelledPair, type PairKind, pairKinds } from "../rwml/state-pairs.js";
import type { Distances, ThresholdEffect } from "../rwml/threshold.js";
import { chart } from "./chart.js";
import { swatch } from "./comparison.js";
import { type Html, html, trusted } from "./html.js";
import { shortNumber, shortPercent } from "./scale.js";
import { script } from "./script.js";
import type { Point, Series } from "./series.js";
import { style } from "./style.js";

/** The contents of the page. */
export interface ThresholdReport {
  readonly environment: string;
  readonly encoder: string;
  readonly dimension: number;
  readonly best: ThresholdEffect;
  readonly strict: ThresholdEffect;
  readonly pairs: readonly (LabelledPair & { readonly distance: number })[];
}

const kinds: readonly PairKind[] = [...pairKinds.right, ...pairKinds.wrong];

/** Points of a cumulative curve: enough to draw it, few enough to keep the file small. */
const MOST_POINTS = 80;

/** The distances of pairs, by kind. */
export function distancesOf(pairs: ThresholdReport["pairs"]): Distances {
  const of = (kind: PairKind) =>
    pairs.filter((pair) => pair.kind === kind).map(({ distance }) => distance);
  return Object.fromEntries(kinds.map((kind) => [kind, of(kind)])) as unknown as Distances;
}

/** The whole page, as HTML. */
export function thresholdPage(report: ThresholdReport): string {
  const { environment, best, strict, pairs } = report;
  const title = `Distances of states: ${environment}`;
  const distances = distancesOf(pairs);
  const series: readonly Series[] = [
    ...kinds.map((kind) => ({ label: kind, points: cumulative(distances[kind]) })),
    { label: `threshold ${shortNumber(best.threshold)}`, points: upright(best.threshold) },
  ];
  const drawn = chart({
    title: "Distances between states",
    note: "share of pairs within the distance",
    series,
    percent: true,
    xLabel: "distance",
  });
  const page = html`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<title>${title}</title><link rel="icon" href="data:,"><style>${trusted(style)}</style></head>
<body><main>
<h1>${title}</h1>
<p class="lead">${pairs.length} pairs of states, encoded by ${report.encoder} (${report.dimension} dimensions). A prediction is
rewarded when its cosine distance to the real state is below the threshold. Same and paraphrase should be below it, the others above.</p>
<nav class="key" aria-label="kinds">${series.map(({ label }, i) => html`<span>${swatch(i)}${label}</span>`)}</nav>
<div class="charts">${drawn}</div>
<section id="thresholds"><h2>What a threshold accepts</h2>
<div class="scroll"><table><thead><tr><th>threshold</th>${kinds.map((kind) => html`<th class="number">${kind}</th>`)}<th class="number">accuracy</th></tr></thead>
<tbody>${row("proposed", best)}${row("strict", strict)}</tbody></table></div>
<p class="hint">Proposed: the best mean of the rates of correct acceptance and correct rejection. Strict: the largest that accepts at most
5 % of states with one fact changed. If the proposed one accepts many of those, reward hacking is cheap: take the strict one, or ROUGE-L.</p></section>
<section id="examples"><h2>Examples</h2>${kinds.map((kind) => examples(kind, pairs))}</section>
</main><script>${trusted(script)}</script></body></html>
`;
  return page.markup;
}

function row(name: string, { threshold, accepted, accuracy }: ThresholdEffect): Html {
  return html`<tr><th>${name}: ${shortNumber(threshold)}</th>${kinds.map(
    (kind) => html`<td class="number">${shortPercent(accepted[kind])}</td>`,
  )}<td class="number">${shortPercent(accuracy)}</td></tr>`;
}

/** The nearest and the farthest pair of a kind. */
function examples(kind: PairKind, pairs: ThresholdReport["pairs"]): Html | string {
  const of = pairs.filter((pair) => pair.kind === kind).sort((a, b) => a.distance - b.distance);
  if (of.length === 0) return "";
  const shown = [...new Set([of[0]!, of[of.length >> 1]!, of.at(-1)!])];
  return html`<h3>${kind}: nearest, median, farthest</h3>${shown.map(
    ({ real, predicted, distance }) => html`<div class="prediction">
<div class="row"><span class="weights">real</span><span>${real}</span><span class="number">${shortNumber(distance)}</span></div>
<div class="row"><span class="weights">${kind}</span><span>${predicted}</span><span></span></div></div>`,
  )}`;
}

function cumulative(distances: readonly number[]): readonly Point[] {
  if (distances.length === 0) return [];
  const sorted = [...distances].sort((a, b) => a - b);
  const count = Math.min(MOST_POINTS, sorted.length);
  return [
    point(0, 0),
    ...Array.from({ length: count }, (_, i) => {
      const at = Math.ceil(((i + 1) * sorted.length) / count) - 1;
      return point(sorted[at]!, (at + 1) / sorted.length);
    }),
  ];
}

const upright = (x: number): readonly Point[] => [point(x, 0), point(x, 1)];

const point = (x: number, mean: number): Point => ({
  x,
  mean,
  deviation: Number.NaN,
  count: 1,
});

/**
 * How far predicted chances can be trusted, as an SVG file of its own: what came, over what was
 * predicted. On the diagonal both are the same; larger points stand for more candidates.
 */
import type { ReliabilityBin } from "@pawl/core/rollout/choice/knowledge.js";
import { escapeHtml, linearScale } from "@pawl/ui/report/scale.js";

/** Chances of the same thing, predicted by one or several models. */
export interface ReliabilityPanel {
  readonly title: string;
  readonly series: readonly { readonly label: string; readonly bins: readonly ReliabilityBin[] }[];
}

const SIZE = 260;
const LEFT = 52;
const TOP = 40;
const STEP = LEFT + SIZE + 28;
/** Distinguishable with colour blindness (Okabe and Ito). */
const COLOURS = ["#0072b2", "#d55e00", "#009e73"];
const LARGEST = 9;
const TENTHS = [0, 0.2, 0.4, 0.6, 0.8, 1];

/** The drawing: a panel beside the other. */
export function reliabilitySvg(title: string, panels: readonly ReliabilityPanel[]): string {
  const labels = [...new Set(panels.flatMap(({ series }) => series.map(({ label }) => label)))];
  const width = panels.length * STEP + 8;
  const height = TOP + SIZE + 48 + 20 * labels.length;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="sans-serif" font-size="12">`,
    `<title>${escapeHtml(title)}</title>`,
    `<rect width="${width}" height="${height}" fill="#fff"/>`,
    ...panels.map((panel, at) => panelSvg(panel, at * STEP, labels)),
    ...labels.map((label, at) => {
      const y = TOP + SIZE + 52 + 20 * at;
      return `<circle cx="${LEFT + 6}" cy="${y}" r="5" fill="${colourOf(at)}"/><text x="${LEFT + 18}" y="${y + 4}">${escapeHtml(label)}</text>`;
    }),
    "</svg>",
    "",
  ].join("\n");
}

function panelSvg(panel: ReliabilityPanel, left: number, labels: readonly string[]): string {
  const x = linearScale([0, 1], [left + LEFT, left + LEFT + SIZE]);
  const y = linearScale([0, 1], [TOP + SIZE, TOP]);
  const grid = TENTHS.flatMap((share) => [
    `<line x1="${at(x(0))}" x2="${at(x(1))}" y1="${at(y(share))}" y2="${at(y(share))}" stroke="#ddd"/>`,
    `<text x="${at(x(0) - 6)}" y="${at(y(share) + 4)}" text-anchor="end">${100 * share} %</text>`,
    `<text x="${at(x(share))}" y="${at(y(0) + 16)}" text-anchor="middle">${100 * share} %</text>`,
  ]);
  const drawn = panel.series.map(({ label, bins }) => {
    const colour = colourOf(labels.indexOf(label));
    const most = Math.max(...bins.map(({ candidates }) => candidates));
    const places = bins.map(({ predicted, happened }) => `${at(x(predicted))},${at(y(happened))}`);
    const points = bins.map(({ candidates, predicted, happened }) => {
      const radius = Math.max(1.5, LARGEST * Math.sqrt(candidates / most));
      return `<circle cx="${at(x(predicted))}" cy="${at(y(happened))}" r="${at(radius)}" fill="${colour}" fill-opacity="0.6"/>`;
    });
    return `<polyline points="${places.join(" ")}" fill="none" stroke="${colour}"/>${points.join("")}`;
  });
  return [
    `<text x="${at(x(0))}" y="24" font-weight="bold">${escapeHtml(panel.title)}</text>`,
    ...grid,
    `<line x1="${at(x(0))}" y1="${at(y(0))}" x2="${at(x(1))}" y2="${at(y(1))}" stroke="#555" stroke-dasharray="4 3"/>`,
    ...drawn,
    `<text x="${at(x(1))}" y="${at(y(0) + 32)}" text-anchor="end">predicted</text>`,
  ].join("\n");
}

const colourOf = (at: number): string => COLOURS[at % COLOURS.length]!;
const at = (value: number): string => value.toFixed(1);

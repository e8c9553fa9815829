/**
 * Draws how a recorded run learned, as an animated SVG: `node docs/learning.js RUN FILE`.
 *
 * RUN is a folder of `pawl train`. The line is the success of each update's episodes, averaged over the
 * last ten updates; the dots are evaluations. Nothing in it is made up: the numbers are those of
 * RUN/metrics.jsonl.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const [run, file] = process.argv.slice(2);
const manifest = JSON.parse(readFileSync(join(run, "manifest.json"), "utf8"));
const lines = readFileSync(join(run, "metrics.jsonl"), "utf8").trim().split("\n").map(JSON.parse);
const updates = lines.filter((line) => line["train.success"] !== undefined);
const success = updates.map((_, i) => {
  const last = updates.slice(Math.max(0, i - 9), i + 1).map((line) => line["train.success"]);
  return last.reduce((sum, value) => sum + value, 0) / last.length;
});

const [width, height, left, right, top, bottom] = [760, 330, 62, 24, 70, 46];
const total = updates.length;
const x = (update) => left + (Math.max(update + 1, 0) / total) * (width - left - right);
const y = (share) => height - bottom - share * (height - top - bottom);
const at = (value) => value.toFixed(1);
const seconds = 8;
const when = (update) => at(0.2 + (Math.max(update + 1, 0) / total) * seconds);

const dots = [
  ["valid_seen", "#39c5cf", -12],
  ["valid_unseen", "#57ab5a", 22],
].flatMap(([split, color, dy]) =>
  lines.flatMap((line) => {
    const value = line[`eval.${split}.success`];
    if (value === undefined) return [];
    const [cx, cy] = [x(line.update), y(value)];
    const end = cx > width - right - 40 ? "end" : cx < left + 40 ? "start" : "middle";
    return `<g><animate attributeName="opacity" values="0;0;1" keyTimes="0;0.99;1" dur="${when(line.update)}s" fill="freeze"/>
<circle cx="${at(cx)}" cy="${at(cy)}" r="5" fill="${color}"/>
<text x="${at(cx)}" y="${at(cy + dy)}" fill="${color}" text-anchor="${end}">${at(100 * value)} %</text></g>`;
  }),
);
const path = success
  .map((value, i) => `${i === 0 ? "M" : "L"}${at(x(i))} ${at(y(value))}`)
  .join("");
const grid = [0, 0.25, 0.5, 0.75, 1].map(
  (
    share,
  ) => `<line x1="${left}" x2="${width - right}" y1="${at(y(share))}" y2="${at(y(share))}" stroke="#30363d"/>
<text x="${left - 8}" y="${at(y(share) + 4)}" fill="#8b949e" text-anchor="end">${100 * share} %</text>`,
);
const ticks = [0, 0.25, 0.5, 0.75, 1].map(
  (share) =>
    `<text x="${at(left + share * (width - left - right))}" y="${height - 22}" fill="#8b949e" text-anchor="middle">${Math.round(share * total)}</text>`,
);
const title = `npx pawl train --seed ${manifest.seed}`;
writeFileSync(
  file,
  `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="13">
<title>${title}: success over ${total} updates</title>
<rect width="100%" height="100%" rx="8" fill="#161b22"/>
<text x="20" y="30" fill="#d0d7de" font-size="15" font-weight="bold">$ ${title}</text>
<text x="20" y="52" fill="#8b949e">success: <tspan fill="#c69026">training</tspan>, <tspan fill="#39c5cf">houses like those seen</tspan>, <tspan fill="#57ab5a">houses unlike them</tspan>; by update of RL</text>
${grid.join("\n")}
${ticks.join("\n")}
<path d="${path}" fill="none" stroke="#c69026" stroke-width="2.5" pathLength="1" stroke-dasharray="1" stroke-dashoffset="0"><animate attributeName="stroke-dashoffset" from="1" to="0" dur="${seconds}s" fill="freeze"/></path>
${dots.join("\n")}
</svg>
`,
);

/**
 * `npm run bench -- learning RUN START END`: draws a training run as docs/images/learning.svg, the picture of the README,
 * with what `pawl eval` recorded of its start and its end.
 */
import { writeFileSync } from "node:fs";
import { openRun } from "@pawl/core/runs/run-folder.js";
import { readCard } from "@pawl/pawl/evaluation/card-markdown.js";

const FILE = "docs/images/learning.svg";
const FONT = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace";
const PLOT = { left: 62, right: 736, top: 70, bottom: 284 } as const;
const SECONDS = 8;
/** One update has 128 episodes of sixteen tasks: a mean over some of them shows the trend. */
const MEAN_OVER = 9;
const TEXT = "#8b949e";
const TRAINING = "#c69026";
const UNSEEN = "#57ab5a";

export async function main([folder, start, end]: readonly string[]): Promise<object> {
  if (folder === undefined || start === undefined || end === undefined)
    throw new Error(
      "expected a run of pawl train and two of pawl eval: npm run bench -- learning RUN START END",
    );
  const run = openRun(folder, warn);
  const trained = run.metrics().flatMap((line) => line["train.success"] ?? []);
  const evaluated = [
    { updates: 0, success: successOf(start) },
    { updates: trained.length, success: successOf(end) },
  ];
  const { seed } = run.manifest;
  writeFileSync(FILE, drawing(`npx pawl train --seed ${seed}`, trained, evaluated));
  return { file: FILE, seed, updates: trained.length, evaluated };
}

const warn = (message: string): void => {
  process.stderr.write(`${message}\n`);
};

function successOf(evaluation: string): number {
  const { success } = readCard(evaluation).results;
  if (success === undefined) throw new Error(`${evaluation}: no episode was evaluated`);
  return success;
}

interface Evaluation {
  readonly updates: number;
  readonly success: number;
}

function drawing(
  command: string,
  trained: readonly number[],
  evaluated: readonly Evaluation[],
): string {
  const length = trained.length;
  const x = (updates: number) => PLOT.left + ((PLOT.right - PLOT.left) * updates) / length;
  const y = (share: number) => PLOT.bottom - (PLOT.bottom - PLOT.top) * share;
  const at = (value: number) => value.toFixed(1);
  const text = (px: number, py: number, more: string, words: string) =>
    `<text x="${at(px)}" y="${at(py)}" ${more}>${words}</text>`;
  const curve = trained.map((_, i) => {
    const recent = trained.slice(Math.max(0, i + 1 - MEAN_OVER), i + 1);
    const mean = recent.reduce((sum, share) => sum + share, 0) / recent.length;
    return `${i === 0 ? "M" : "L"}${at(x(i + 1))} ${at(y(mean))}`;
  });
  const point = ({ updates, success }: Evaluation): string => {
    const anchor = updates === 0 ? "start" : "end";
    const label = text(
      x(updates),
      y(success) + (updates === 0 ? 22 : -12),
      `fill="${UNSEEN}" text-anchor="${anchor}"`,
      `${(100 * success).toFixed(1)} %`,
    );
    return `<circle cx="${at(x(updates))}" cy="${at(y(success))}" r="5" fill="${UNSEEN}"/>${label}`;
  };
  const colours = `<tspan fill="${TRAINING}">training, mean of ${MEAN_OVER} updates</tspan>, <tspan fill="${UNSEEN}">1,000 tasks in houses unlike those seen</tspan>`;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="760" height="330" viewBox="0 0 760 330" font-family="${FONT}" font-size="13">`,
    `<title>${command}: success over ${length} updates</title>`,
    `<rect width="100%" height="100%" rx="8" fill="#161b22"/>`,
    text(20, 30, `fill="#d0d7de" font-size="15" font-weight="bold"`, `$ ${command}`),
    text(20, 52, `fill="${TEXT}"`, `success: ${colours}; by update of RL`),
    ...[0, 0.25, 0.5, 0.75, 1].flatMap((share) => [
      `<line x1="${PLOT.left}" x2="${PLOT.right}" y1="${at(y(share))}" y2="${at(y(share))}" stroke="#30363d"/>`,
      text(PLOT.left - 8, y(share) + 4, `fill="${TEXT}" text-anchor="end"`, `${100 * share} %`),
    ]),
    ...[0, 0.25, 0.5, 0.75, 1].map((share) =>
      text(
        x(share * length),
        PLOT.bottom + 24,
        `fill="${TEXT}" text-anchor="middle"`,
        `${Math.round(share * length)}`,
      ),
    ),
    `<path d="${curve.join("")}" fill="none" stroke="${TRAINING}" stroke-width="2.5" pathLength="1" stroke-dasharray="1"><animate attributeName="stroke-dashoffset" from="1" to="0" dur="${SECONDS}s" fill="freeze"/></path>`,
    ...evaluated.map(point),
    "</svg>",
    "",
  ].join("\n");
}

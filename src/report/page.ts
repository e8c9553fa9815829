/** The page of a report: one file that needs nothing but a browser. */
import type { PawOptions } from "../objectives/paw-options.js";
import { evaluationTable, runsTable, swatch, timeTable } from "./comparison.js";
import { curves } from "./curves.js";
import { type Html, html, trusted } from "./html.js";
import { type PredictedStep, predictionLegend, predictionList } from "./predictions.js";
import type { RunGroup } from "./run-groups.js";
import { episodeList, type SampledEpisode } from "./sampled-episodes.js";
import { script } from "./script.js";
import { style } from "./style.js";

/** A group of runs, with episodes and predictions of its first run. */
export interface ReportGroup extends RunGroup {
  readonly episodes: readonly SampledEpisode[];
  /** Absent unless predictions were requested. */
  readonly predictions?: { readonly steps: readonly PredictedStep[]; readonly paw: PawOptions };
}

/** The whole page, as HTML. */
export function reportPage(groups: readonly ReportGroup[]): string {
  const runs = groups.flatMap((group) => group.runs);
  const dates = runs.map(({ manifest }) => manifest.createdAt.slice(0, 10)).sort();
  const environments = [...new Set(runs.map(({ manifest }) => environmentOf(manifest.config)))];
  const title = `Training report: ${environments.join(", ")}`;
  const period = [...new Set([dates[0]!, dates.at(-1)!])].join(" to ");
  const time = timeTable(groups);
  const playing = groups.filter(({ runs: [first] }) => first!.manifest.kind === "train");
  const page = html`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<title>${title}</title><link rel="icon" href="data:,"><style>${trusted(style)}</style></head>
<body><main>
<h1>${title}</h1>
<p class="lead">${count(runs.length, "run")} in ${count(groups.length, "group")}, started ${period}.
${groups.some((group) => group.runs.length > 1) && SPREAD}</p>
${runsTable(groups)}
<section id="results"><h2>Results</h2>${evaluationTable(groups)}</section>
<section id="curves"><h2>Curves</h2>
${groups.length > 1 && html`<nav class="key" aria-label="groups">${groups.map((group, i) => html`<span>${swatch(i)}${group.label}</span>`)}</nav>`}
${curves(groups)}</section>
${time !== undefined && html`<section id="time"><h2>Where the time went</h2>${time}</section>`}
${
  playing.length > 0 &&
  html`<section id="episodes"><h2>Episodes</h2>
<p class="hint">The first and the last solved, and the first and the last failed, of the first run of each group.</p>
${playing.map((group) => html`${heading(groups, group)}${episodeList(group.episodes)}`)}</section>
<section id="predictions"><h2>What the model expects to see</h2>${predictionSection(groups)}</section>`
}
</main><script>${trusted(script)}</script></body></html>
`;
  return page.markup;
}

const SPREAD =
  "Runs that differ only by their seed form a group: curves show its mean and one standard deviation.";

function predictionSection(groups: readonly ReportGroup[]): Html {
  if (groups.every((group) => group.predictions === undefined)) {
    return html`<p class="hint">Probabilities of observation tokens are not part of a run’s record. Add
<code>--predictions</code> to compute them with the run’s start weights and latest checkpoint.</p>`;
  }
  return html`${groups.map((group) => {
    const { predictions } = group;
    return predictions === undefined
      ? ""
      : html`${heading(groups, group)}${predictionLegend(predictions.paw)}${predictionList(predictions.steps)}`;
  })}`;
}

function heading(groups: readonly ReportGroup[], group: ReportGroup): Html | string {
  if (groups.length === 1) return "";
  return html`<h4>${swatch(groups.indexOf(group))}${group.label}</h4>`;
}

/** The environment, or the data sets if there is none. */
function environmentOf({ env, data }: Readonly<Record<string, unknown>>): string {
  if (Array.isArray(data)) return data.join(", ");
  return String((env as { readonly name?: unknown } | undefined)?.name ?? "unknown");
}

const count = (n: number, noun: string): string => `${n} ${noun}${n === 1 ? "" : "s"}`;

/** Tables that compare groups of runs: the last evaluations, and where the time went. */
import { colourClass } from "./chart.js";
import { splitsOf } from "./curves.js";
import { type Html, html } from "./html.js";
import type { ReportRun, RunGroup } from "./run-groups.js";
import { shortNumber, shortPercent } from "./scale.js";
import { type Spread, spreadOf } from "./series.js";

/** The compared groups, with their colours, seeds and folders. */
export function runsTable(groups: readonly RunGroup[]): Html {
  const rows = groups.map(({ label, runs }, index) => {
    const seeds = runs.map(({ manifest }) => manifest.seed).join(", ");
    const updates = runs.map(({ metrics }) => (metrics.at(-1)?.update ?? -1) + 1);
    const statuses = [...new Set(runs.map(({ manifest }) => manifest.status))].join(", ");
    return html`<tr><th scope="row">${swatch(index)}${label}</th><td>${seeds}</td>
<td class="number">${[...new Set(updates)].join(", ")}</td><td>${statuses}</td>
<td class="folders">${runs.map(({ folder }) => html`<code>${folder}</code> `)}</td></tr>`;
  });
  return html`<div class="scroll"><table><thead><tr><th>Runs</th><th>Seeds</th><th class="number">Updates</th>
<th>Status</th><th>Folders</th></tr></thead><tbody>${rows}</tbody></table></div>`;
}

/**
 * Success at the start and at the last evaluation of each group, mean ± standard deviation over its
 * runs.
 */
export function evaluationTable(groups: readonly RunGroup[]): Html {
  const splits = splitsOf(groups);
  if (splits.length === 0) return html`<p class="hint">No evaluation was recorded.</p>`;
  const columns = splits.flatMap((split) => [
    { split, name: `eval.${split}.success`, title: split, percent: true },
    ...(groups.some(({ runs }) =>
      runs.some((run) => valuesOf(run, `eval.${split}.score`).length > 0),
    )
      ? [{ split, name: `eval.${split}.score`, title: `${split} score`, percent: false }]
      : []),
  ]);
  const rows = groups.map(({ label, runs }, index) => {
    const cells = columns.map(({ name, percent }) => {
      const courses = runs.map((run) => valuesOf(run, name)).filter((course) => course.length > 0);
      if (courses.length === 0) return html`<td class="number">–</td>`;
      const first = spreadOf(courses.map((course) => course[0]!));
      const last = spreadOf(courses.map((course) => course.at(-1)!));
      return html`<td class="number"><div class="strong">${plusMinus(last, percent)}</div>
<div class="start">from ${plusMinus(first, percent)}</div></td>`;
    });
    return html`<tr><th scope="row">${swatch(index)}${label}</th><td class="number">${runs.length}</td>${cells}</tr>`;
  });
  const heads = columns.map(({ title }) => html`<th class="number">${title}</th>`);
  return html`<div class="scroll"><table><thead><tr><th>Success</th><th class="number">n</th>${heads}</tr></thead>
<tbody>${rows}</tbody></table></div>
<p class="hint">The last evaluation of each run, and its first, before RL: mean ± standard deviation over
the n runs of a group, which differ only by their seed.</p>`;
}

const PHASES = ["rollout", "score", "prepare", "learn"] as const;

/** Mean seconds per update in each phase. */
export function timeTable(groups: readonly RunGroup[]): Html | undefined {
  const times = groups.map(({ runs }) =>
    PHASES.map((phase) => {
      const values = runs.flatMap((run) => valuesOf(run, `seconds.${phase}`));
      return values.length === 0 ? 0 : spreadOf(values).mean;
    }),
  );
  const totals = times.map((phases) => phases.reduce((sum, seconds) => sum + seconds, 0));
  const longest = Math.max(...totals);
  if (!(longest > 0)) return undefined;
  const rows = groups.map(({ label }, index) => {
    const bars = PHASES.map(
      (phase, i) =>
        html`<span class="phase ${phase}" style="width:${((100 * times[index]![i]!) / longest).toFixed(2)}%" title="${phase} ${shortNumber(times[index]![i]!)} s"></span>`,
    );
    const numbers = times[index]!.map((s) => html`<td class="number">${s.toFixed(2)}</td>`);
    return html`<tr><th scope="row">${swatch(index)}${label}</th>${numbers}<td class="number strong">${totals[index]!.toFixed(2)}</td>
<td class="bars"><div>${bars}</div></td></tr>`;
  });
  const heads = PHASES.map(
    (phase) => html`<th class="number"><span class="phase ${phase} key"></span>${phase}</th>`,
  );
  return html`<div class="scroll"><table><thead><tr><th>Seconds per update</th>${heads}<th class="number">all</th><th class="bars"></th></tr></thead>
<tbody>${rows}</tbody></table></div>`;
}

/** A group's name with its colour. */
export function swatch(index: number): Html {
  return html`<span class="swatch ${colourClass(index)}"></span>`;
}

function valuesOf({ metrics }: ReportRun, name: string): readonly number[] {
  return metrics.flatMap((line) => line[name] ?? []);
}

function plusMinus({ mean, deviation, count }: Spread, percent: boolean): string {
  const format = percent ? shortPercent : shortNumber;
  if (count < 2) return format(mean);
  return percent
    ? `${(100 * mean).toFixed(1)} ± ${(100 * deviation).toFixed(1)} %`
    : `${format(mean)} ± ${format(deviation)}`;
}

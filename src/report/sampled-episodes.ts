/** Episodes to read: the first and last solved, and the first and last failed, of each run. */
import type { Episode, Step } from "../rollout/episode.js";
import { type Html, html } from "./html.js";

/** An episode with its place in the run. */
export interface SampledEpisode {
  readonly update: number;
  readonly episode: Episode;
}

/**
 * The first and last solved, the first and last failed, in the order of the run; broken ones are
 * skipped.
 */
export function sampleEpisodes(
  episodes: Iterable<Episode>,
  groupsPerUpdate: number,
): readonly SampledEpisode[] {
  const first = new Map<boolean, Episode>();
  const last = new Map<boolean, Episode>();
  for (const episode of episodes) {
    if (episode.stop === "broken") continue;
    if (!first.has(episode.success)) first.set(episode.success, episode);
    last.set(episode.success, episode);
  }
  return [...new Set([...first.values(), ...last.values()])]
    .sort((a, b) => a.group - b.group || a.attempt - b.attempt)
    .map((episode) => ({ update: Math.floor(episode.group / groupsPerUpdate), episode }));
}

/** The episodes, collapsed. */
export function episodeList(sampled: readonly SampledEpisode[]): Html {
  if (sampled.length === 0) return html`<p class="hint">No complete episode was recorded.</p>`;
  return html`${sampled.map(
    ({ update, episode }, index) => html`<details class="episode"${index === 0 && html` open`}>
<summary><span class="badge ${episode.success ? "solved" : "failed"}">${episode.success ? "solved" : "failed"}</span>
<span class="goal">${episode.goal}</span>
<span class="quiet">update ${update + 1} · ${episode.task.type} · ${episode.steps.length} steps · return ${episode.return}</span></summary>
<p class="sees">${episode.firstObservation}</p>
<ol class="steps">${episode.steps.map(stepItem)}</ol>
${episode.stop === "done" ? "" : html`<p class="quiet">Stopped: ${episode.stop.replace("-", " ")}.</p>`}
</details>`,
  )}`;
}

function stepItem(step: Step): Html {
  const written = step.response.trim();
  const remark = step.valid
    ? ""
    : step.wellFormed
      ? "refused"
      : step.cut
        ? "truncated"
        : "malformed";
  return html`<li><div class="action"><code>${step.action || "(no action)"}</code>
${remark !== "" && html`<span class="badge failed">${remark}</span>`}
${step.reward !== 0 && html`<span class="badge solved">reward ${step.reward}</span>`}</div>
${written !== step.action && html`<div class="response">${written}</div>`}
<div class="observation">${step.observation}</div></li>`;
}

/** Episodes to read: the first and last solved, and the first and last failed, of each run. */
import type { Episode, Step } from "@pawl/core/rollout/episode.js";
import type { ExchangeView, ReportEpisode } from "./views.js";

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

/** A sampled episode as a report shows it. */
export function viewSampled({ update, episode }: SampledEpisode): ReportEpisode {
  const { goal, task, success, stop, firstObservation, steps } = episode;
  return {
    update,
    goal,
    type: task.type,
    return: episode.return,
    success,
    stop,
    firstObservation,
    steps: steps.map(viewExchange),
  };
}

function viewExchange(step: Step): ExchangeView {
  const whole = (text: string) => ({ text, length: text.length });
  return {
    response: whole(step.response),
    action: whole(step.action),
    observation: whole(step.observation),
    wellFormed: step.wellFormed,
    valid: step.valid,
    cut: step.cut === true,
    strayed: step.strayed === true,
    reward: step.reward,
  };
}

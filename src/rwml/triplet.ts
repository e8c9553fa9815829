/** Triplets (history ≤ t, a_t, s_{t+1}), cut from recorded episodes: what a world model learns from. */
import type { Episode } from "../rollout/episode.js";
import type { PromptView } from "../text/prompt.js";

/** A step of an episode as a question: given the history and the action, what comes next? */
export interface Triplet {
  readonly source: Episode;
  readonly step: number;
}

/**
 * All steps of all complete episodes; a broken episode's last step may be the world's fault, so it
 * has none.
 */
export function tripletsOf(episodes: readonly Episode[]): readonly Triplet[] {
  return episodes
    .filter((episode) => episode.stop !== "broken")
    .flatMap((source) => source.steps.map((_, step) => ({ source, step })));
}

/**
 * What was known before the action; the admissible actions are left out, because they reveal the
 * state.
 */
export function historyOf({ source, step }: Triplet): PromptView {
  const { goal, firstObservation, steps } = source;
  return {
    goal,
    firstObservation,
    observation: step === 0 ? firstObservation : steps[step - 1]!.observation,
    steps: steps.slice(0, step),
    admissible: undefined,
    index: step,
  };
}

/** The action whose result is asked for. */
export const actionOf = ({ source, step }: Triplet): string => source.steps[step]!.action;

/** The real next state. */
export const nextStateOf = ({ source, step }: Triplet): string => source.steps[step]!.observation;

/** Whether it ended the episode. */
export const isLast = ({ source, step }: Triplet): boolean =>
  source.stop === "done" && step === source.steps.length - 1;

/** A name that distinguishes the triplets of one record. */
export const nameOf = ({ source, step }: Triplet): string =>
  `${source.task.id}#${source.group}.${source.attempt}.${step}`;

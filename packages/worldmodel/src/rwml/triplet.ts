/** Triplets (history ≤ t, a_t, s_{t+1}), cut from recorded episodes: what a world model learns from. */
import { UserError } from "@pawl/core/errors.js";
import type { Episode } from "@pawl/core/rollout/episode.js";
import type { PromptStyle, PromptView } from "@pawl/core/text/prompt.js";
import { readCall, readTools, type Tool } from "@pawl/core/text/tool.js";

/** A step of an episode as a question: given the history and the action, what comes next? */
export interface Triplet {
  readonly source: Episode;
  readonly step: number;
}

/**
 * All steps of all complete episodes that reached the world; a broken episode's last step may be the
 * world's fault, so it has none.
 */
export function tripletsOf(episodes: readonly Episode[]): readonly Triplet[] {
  return episodes
    .filter((episode) => episode.stop !== "broken")
    .flatMap((source) =>
      source.steps.flatMap(({ refused }, step) => (refused ? [] : [{ source, step }])),
    );
}

/**
 * What was known before the action; the admissible actions are left out, because they reveal the
 * state.
 */
export function historyOf({ source, step }: Triplet): PromptView {
  const { goal, firstObservation, steps } = source;
  const tools = toolsOf(source);
  return {
    goal,
    firstObservation,
    observation: step === 0 ? firstObservation : steps[step - 1]!.observation,
    steps: steps.slice(0, step),
    admissible: undefined,
    index: step,
    ...(tools !== undefined && { tools }),
  };
}

const read = new WeakMap<Episode, readonly Tool[] | undefined>();

/** The tools that the policy was shown: a prompt of the style `compact` lists none. */
export function toolsOf(source: Episode): readonly Tool[] | undefined {
  if (read.has(source)) return read.get(source);
  const listed = source.steps[0]?.prompt.find(({ origin }) => origin === "tools");
  const tools = listed === undefined ? undefined : readTools(listed.text);
  read.set(source, tools);
  return tools;
}

/** The action whose result is asked for. */
export const actionOf = ({ source, step }: Triplet): string => source.steps[step]!.action;

/** What the policy wrote to take it. */
export const responseOf = ({ source, step }: Triplet): string => source.steps[step]!.response;

/** The real next state. */
export const nextStateOf = ({ source, step }: Triplet): string => source.steps[step]!.observation;

/** Whether it ended the episode. */
export const isLast = ({ source, step }: Triplet): boolean =>
  source.stop === "done" && step === source.steps.length - 1;

/** A name that distinguishes the triplets of one record. */
export const nameOf = ({ source, step }: Triplet): string =>
  `${source.task.id}#${source.group}.${source.attempt}.${step}`;

/** Refuses calls of tools that their record does not list, where questions should show them. */
export function checkTools(triplets: readonly Triplet[], style: PromptStyle): void {
  if (style.responseEnd !== "") return;
  const bare = triplets.find(
    (triplet) => toolsOf(triplet.source) === undefined && readCall(actionOf(triplet)) !== undefined,
  );
  if (bare === undefined) return;
  throw new UserError(
    `collect.runs: the episode of ${bare.source.task.id} calls tools that its prompts do not list, so a question of the style ${style.name} could not show them. Use episodes that were recorded with --prompt.style chat or full, or ask with --prompt.style compact.`,
  );
}

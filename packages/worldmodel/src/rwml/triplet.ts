/** Triplets (history ≤ t, a_t, s_{t+1}), cut from recorded episodes: what a world model learns from. */

import { existsSync, renameSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import { UserError } from "@pawl/core/errors.js";
import type { Episode } from "@pawl/core/rollout/episode.js";
import { foreignRecords, tiesOf } from "@pawl/core/runs/checkpoints.js";
import { openRecordWriter, readRecords } from "@pawl/core/runs/record-file.js";
import { RunError } from "@pawl/core/runs/run-error.js";
import type { PromptStyle, PromptView } from "@pawl/core/text/prompt.js";
import { readCall, readTools, type Tool } from "@pawl/core/text/tool.js";

// The triplets of a run on disk, written completely or not at all, so that a resumed run learns
// from the same ones.

/** What a run learns from, and what it is evaluated on. */
export interface TripletData {
  readonly train: readonly Triplet[];
  readonly heldOut: readonly Triplet[];
  /** The number of triplets at each stage, by name. */
  readonly counts: Readonly<Record<string, number>>;
  /** The reward that separated easy triplets from hard ones. */
  readonly reward: string;
  /** Cut before questions showed tools and what was written beside an action. */
  readonly older?: true;
}

/** Episode and step of a triplet; the episode by its index in the file. */
type Place = readonly [episode: number, step: number];

/** Since 2: the first step keeps the tools of its prompt, and questions show what was written. */
const VERSION = 2;

interface Head {
  readonly version?: number;
  readonly train: readonly Place[];
  readonly heldOut: readonly Place[];
  readonly counts: TripletData["counts"];
  readonly reward: string;
  /** When the run was created that they belong to: files get mixed up. */
  readonly run?: string | undefined;
}

/**
 * Writes the triplets and their episodes, without the tokens and prompts, which are recomputed from
 * the text; of the prompts only the tools are kept.
 */
export function saveTriplets(path: string, data: TripletData): void {
  const episodes = [...new Set([...data.train, ...data.heldOut].map(({ source }) => source))];
  const number = new Map(episodes.map((episode, i) => [episode, i]));
  const placesOf = (triplets: readonly Triplet[]): readonly Place[] =>
    triplets.map(({ source, step }) => [number.get(source)!, step]);
  const head: Head = {
    version: VERSION,
    train: placesOf(data.train),
    heldOut: placesOf(data.heldOut),
    counts: data.counts,
    reward: data.reward,
    run: tiesOf(dirname(path)).run,
  };
  const temporary = `${path}.tmp`;
  rmSync(temporary, { force: true });
  const writer = openRecordWriter(temporary, ({ message }) => {
    throw new RunError(message);
  });
  writer.append([head]);
  writer.append(
    episodes.map((episode) => ({
      ...episode,
      steps: episode.steps.map(({ sequence: _, prompt, ...step }, at) => ({
        ...step,
        prompt: at > 0 ? [] : prompt.filter(({ origin }) => origin === "tools"),
      })),
    })),
  );
  writer.close();
  renameSync(temporary, path);
}

/** Reads what `saveTriplets` wrote; undefined if there is no file. */
export function loadTriplets(path: string): TripletData | undefined {
  if (!existsSync(path)) return undefined;
  const refuse = (message: string): never => {
    throw new RunError(`${message}. Remove ${path} to collect the triplets again.`);
  };
  const records = readRecords(path, ({ message }) => refuse(message));
  const [head, ...episodes] = [...records] as [Head | undefined, ...Episode[]];
  if (head === undefined) return refuse(`${path} is empty`);
  const foreign = foreignRecords(dirname(path), path, head);
  if (foreign !== undefined) return refuse(foreign);
  const tripletsAt = (places: readonly Place[]): readonly Triplet[] =>
    places.map(([episode, step]) => ({
      source: episodes[episode] ?? refuse(`${path}: the episode ${episode} is missing`),
      step,
    }));
  return {
    train: tripletsAt(head.train),
    heldOut: tripletsAt(head.heldOut),
    counts: head.counts,
    reward: head.reward,
    ...(head.version !== VERSION && { older: true }),
  };
}

/** Whether a run that was started with these triplets asked other questions than this version does. */
export function asksOtherwise({ train, heldOut, older }: TripletData, style: PromptStyle): boolean {
  if (older !== true || style.responseEnd !== "") return false;
  return [...train, ...heldOut].some(
    (triplet) =>
      readCall(actionOf(triplet)) !== undefined ||
      (style.name === "chat" && responseOf(triplet) !== style.format(actionOf(triplet))),
  );
}

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

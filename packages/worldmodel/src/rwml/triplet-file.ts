/**
 * The triplets of a run on disk, written completely or not at all, so that a resumed run learns
 * from the same ones.
 */
import { existsSync, renameSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import type { Episode } from "@pawl/core/rollout/episode.js";
import { foreignRecords, tiesOf } from "@pawl/core/runs/checkpoints.js";
import { openRecordWriter, readRecords } from "@pawl/core/runs/record-file.js";
import { RunError } from "@pawl/core/runs/run-error.js";
import type { PromptStyle } from "@pawl/core/text/prompt.js";
import { readCall } from "@pawl/core/text/tool.js";
import { actionOf, responseOf, type Triplet } from "./triplet.js";

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

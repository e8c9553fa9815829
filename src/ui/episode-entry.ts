/** What the index knows of an episode: where its record is, and what one filters by. */
import type { StopReason } from "../rollout/episode.js";
import type { EpisodeRecord } from "../runs/episode-record.js";

/** One line of the list of episodes. */
export interface EpisodeEntry {
  /** Where the gzip member with its record starts, how long it is, and which line of it this is. */
  readonly offset: number;
  readonly length: number;
  readonly line: number;
  readonly group: number;
  readonly attempt: number;
  readonly task: string;
  readonly type: string;
  readonly split: string;
  readonly policy: string;
  readonly goal: string;
  readonly steps: number;
  /** Steps whose action was malformed or refused. */
  readonly invalid: number;
  /** Tokens that the policy wrote, if they were recorded. */
  readonly tokens: number;
  readonly return: number;
  readonly score: number | null;
  readonly success: boolean;
  readonly stop: StopReason;
}

/** The name of an episode in links: group, attempt and its place in the record. */
export const idOf = ({ offset, line }: Pick<EpisodeEntry, "offset" | "line">): string =>
  `${offset}-${line}`;

/** Goals are shown in lists: longer ones are cut. */
const LONGEST_GOAL = 200;
/** Names that a world gives to tasks; hostile ones are cut. */
const LONGEST_NAME = 100;

/** The entry of a record. */
export function entryOf(
  record: EpisodeRecord,
  place: Pick<EpisodeEntry, "offset" | "length" | "line">,
): EpisodeEntry {
  const { task, group, attempt, steps } = record;
  const name = (text: unknown): string => String(text ?? "").slice(0, LONGEST_NAME);
  return {
    ...place,
    group,
    attempt,
    task: name(task.id),
    type: name(task.type),
    split: name(task.split),
    policy: name(record.policy),
    goal: record.goal.slice(0, LONGEST_GOAL),
    steps: steps.length,
    invalid: steps.filter(({ valid }) => !valid).length,
    tokens: steps.reduce((sum, { sequence }) => sum + (sequence?.logprobs?.length ?? 0), 0),
    return: record.return,
    score: record.score ?? null,
    success: record.success,
    stop: record.stop,
  };
}

/** The texts that a search looks at. */
export function textsOf(record: EpisodeRecord): readonly string[] {
  const { goal, firstObservation, task, steps } = record;
  return [
    goal,
    task.id,
    task.type,
    firstObservation,
    ...steps.flatMap(({ response, action, observation }) =>
      response === action ? [action, observation] : [response, action, observation],
    ),
  ];
}

type Row = readonly unknown[];

const KEYS = [
  ...["offset", "length", "line", "group", "attempt", "task", "type", "split", "policy", "goal"],
  ...["steps", "invalid", "tokens", "return", "score", "success", "stop"],
] as readonly (keyof EpisodeEntry)[];

/** An entry as a list: the names of its fields would be most of the file. */
export const rowOf = (entry: EpisodeEntry): Row => KEYS.map((key) => entry[key]);

/** The entry of a row. */
export const ofRow = (row: Row): EpisodeEntry =>
  Object.fromEntries(KEYS.map((key, i) => [key, row[i]])) as unknown as EpisodeEntry;

/** What the index knows of an episode: where its record is, and what one filters by. */
import type { StopReason } from "@pawl/core/rollout/episode.js";
import type { EpisodeRecord } from "@pawl/core/runs/episode-record.js";

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

/** The name of an episode in links: its place in the record. */
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

type Row = readonly [
  ...[offset: number, length: number, line: number, group: number, attempt: number],
  ...[task: string, type: string, split: string, policy: string, goal: string],
  ...[steps: number, invalid: number, tokens: number, return_: number, score: number | null],
  ...[success: boolean, stop: StopReason],
];

/** An entry as a list: the names of its fields would be most of the file. */
export const rowOf = (entry: EpisodeEntry): Row => [
  entry.offset,
  entry.length,
  entry.line,
  entry.group,
  entry.attempt,
  entry.task,
  entry.type,
  entry.split,
  entry.policy,
  entry.goal,
  entry.steps,
  entry.invalid,
  entry.tokens,
  entry.return,
  entry.score,
  entry.success,
  entry.stop,
];

/** The entry of a row. Written out, because a large index has many. */
export const ofRow = (row: Row): EpisodeEntry => ({
  offset: row[0],
  length: row[1],
  line: row[2],
  group: row[3],
  attempt: row[4],
  task: row[5],
  type: row[6],
  split: row[7],
  policy: row[8],
  goal: row[9],
  steps: row[10],
  invalid: row[11],
  tokens: row[12],
  return: row[13],
  score: row[14],
  success: row[15],
  stop: row[16],
});

/** Rewards of finished episodes: by name, built in or from plugins. */
import { addedParts, addPart } from "../../added-parts.js";
import { UserError } from "../../errors.js";
import type { ToolCall } from "../../text/tool.js";
import { EnvError } from "../env.js";
import type { TaskRecord } from "./task-record.js";

/** A finished episode, as its reward sees it. */
export interface FinishedTask {
  readonly task: TaskRecord;
  /** What the policy did, in order. */
  readonly actions: readonly string[];
  /** The last of them; where tools are called, the text given to the tool `answer`. */
  readonly answer: string;
  /** Where tools are called: what each call before the answer gave. */
  readonly observations?: readonly string[];
  /** Where tools are called: calls one once more, to see what the episode left behind. */
  call?(call: ToolCall): string | Promise<string>;
}

/** What an episode is worth; a number alone is a success if it is the largest. */
export interface Reward {
  readonly reward: number;
  readonly success: boolean;
  readonly score?: number;
  /** What the policy is told at the end, and a world model learns to predict. */
  readonly observation?: string;
}

/** Judges a finished episode, at once or later; `signal` is aborted when nobody waits any more. */
export type RewardFunction = (
  episode: FinishedTask,
  signal?: AbortSignal,
) => number | Reward | Promise<number | Reward>;

const rewards = (): ReadonlyMap<string, RewardFunction> =>
  new Map([["exact", exact], ["match", match], ...addedParts<RewardFunction>("rewards")]);

/** The names of the rewards. */
export const rewardNames = (): [string, ...string[]] => [...rewards().keys()] as [string];

/** The reward with this name. */
export const rewardOf = (name: string): RewardFunction => rewards().get(name)!;

/** Adds a reward, so that `--env.reward` can name it. */
export function registerReward(name: string, reward: RewardFunction): void {
  if (!/^[a-z][a-z0-9-]*$/.test(name))
    throw new UserError(
      `reward "${name}": a name consists of lowercase letters, digits and dashes`,
    );
  if (typeof reward !== "function")
    throw new UserError(`reward "${name}": expected a function of a finished episode`);
  if (rewards().has(name))
    throw new UserError(`there is a reward "${name}" already; choose another name`);
  addPart("rewards", name, reward);
}

/** 1 if the answer is the task's `answer`, apart from case and white space. */
function exact({ task, answer }: FinishedTask): number {
  const expected = task.answer;
  if (typeof expected !== "string" && typeof expected !== "number")
    throw new EnvError(`task ${task.id}: the reward exact needs an "answer" in the task's line`);
  const plain = (text: string): string => text.trim().toLowerCase().replace(/\s+/g, " ");
  return plain(answer) === plain(String(expected)) ? 1 : 0;
}

/** 1 if the answer matches the task's `pattern`, a regular expression. */
function match({ task, answer }: FinishedTask): number {
  const { pattern } = task;
  if (typeof pattern !== "string")
    throw new EnvError(`task ${task.id}: the reward match needs a "pattern" in the task's line`);
  try {
    return new RegExp(pattern, "u").test(answer) ? 1 : 0;
  } catch (error) {
    throw new EnvError(`task ${task.id}: "pattern": ${(error as Error).message}`, { cause: error });
  }
}

/** What a reward function gave, in full; anything else is refused. */
export function asReward(given: number | Reward, maxReturn: number): Reward {
  if (typeof given === "number") return { reward: given, success: given >= maxReturn };
  if (typeof given !== "object" || given === null || !("reward" in given))
    throw new EnvError(
      `the reward function gave ${JSON.stringify(given)}; expected a number, or { reward, success }`,
    );
  return given;
}

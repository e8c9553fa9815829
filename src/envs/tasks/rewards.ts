/** Rewards of finished episodes: by name, built in or from plugins. */
import { UserError } from "../../errors.js";
import { EnvError } from "../env.js";
import type { TaskRecord } from "./task-record.js";

/** A finished episode, as its reward sees it. */
export interface FinishedTask {
  readonly task: TaskRecord;
  /** What the policy did, in order. */
  readonly actions: readonly string[];
  /** The last of them. */
  readonly answer: string;
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

const rewards = new Map<string, RewardFunction>([["exact", exact]]);

/** The names of the rewards. */
export const rewardNames = (): [string, ...string[]] => [...rewards.keys()] as [string];

/** The reward with this name. */
export const rewardOf = (name: string): RewardFunction => rewards.get(name)!;

/** Adds a reward, so that `--env.reward` can name it. */
export function registerReward(name: string, reward: RewardFunction): void {
  if (!/^[a-z][a-z0-9-]*$/.test(name))
    throw new UserError(
      `reward "${name}": a name consists of lowercase letters, digits and dashes`,
    );
  if (typeof reward !== "function")
    throw new UserError(`reward "${name}": expected a function of a finished episode`);
  if (rewards.has(name))
    throw new UserError(`there is a reward "${name}" already; choose another name`);
  rewards.set(name, reward);
}

/** 1 if the answer is the task's `answer`, apart from case and white space. */
function exact({ task, answer }: FinishedTask): number {
  const expected = task.answer;
  if (typeof expected !== "string" && typeof expected !== "number")
    throw new EnvError(`task ${task.id}: the reward exact needs an "answer" in the task's line`);
  const plain = (text: string): string => text.trim().toLowerCase().replace(/\s+/g, " ");
  return plain(answer) === plain(String(expected)) ? 1 : 0;
}

/**
 * An agent: a program of a user's own that asks the model itself, with its tasks and its reward.
 * Pawl runs it many times, records what the model was asked and answered, and trains the model.
 */

import { UserError } from "@pawl/core/errors.js";
import type { PawlModel } from "./ai-sdk-model.js";
import type { ChatMessage } from "./chat.js";
import type { RecordedCall } from "./session.js";

/** What an agent's task may have besides what its `run` needs. */
export interface AgentTask {
  /** Unique in its split (default: its number). */
  readonly id?: string;
  /** The family by which results are broken down (default: `task`). */
  readonly type?: string;
}

/** A finished run of an agent, as its reward sees it. */
export interface AgentRun<T> {
  readonly task: T;
  /** What `run` returned. */
  readonly result: unknown;
  /** Every call of the model, in the order in which they were asked. */
  readonly calls: readonly RecordedCall[];
  /** The last call's conversation with its answer: the whole transcript, unless it forked. */
  readonly messages: readonly ChatMessage[];
}

/** What a run is worth; it is a success if its reward is the largest, unless this says otherwise. */
export interface AgentReward {
  readonly reward: number;
  readonly success?: boolean;
  readonly score?: number;
  /** Why, in words: recorded with the episode. */
  readonly why?: string;
}

/** What an agent is. */
export interface Agent<T extends object = AgentTask> {
  /** What runs call it (default: the name of its file). */
  readonly name?: string;
  /** The tasks of each split, with an `id` and a `type` if they should have any. */
  readonly tasks: Readonly<Record<string, readonly T[]>>;
  /** Does a task with the model; `signal` is aborted when its result is no longer needed. */
  run(task: T, model: PawlModel, signal: AbortSignal): unknown;
  /** What a run is worth, at once or later. */
  reward(
    run: AgentRun<T>,
    signal: AbortSignal,
  ): number | AgentReward | Promise<number | AgentReward>;
  /** Whether a call is a turn of the agent, to be trained (default: every call is). */
  filter?(call: RecordedCall): boolean;
  /** The largest reward (default: 1). */
  readonly maxReturn?: number;
  /** The most calls of a run (default: 32). */
  readonly callLimit?: number;
  /** What the tokens of a model from scratch are made from (default: the texts of the tasks). */
  readonly texts?: readonly string[];
}

/** An agent with its parts checked by the compiler: `export default defineAgent({ … })`. */
export function defineAgent<T extends object>(agent: Agent<T>): Agent<T> {
  return agent;
}

/** Whether a module's default export is meant as an agent. */
export function isAgent(value: unknown): value is Agent {
  return typeof value === "object" && value !== null && ("run" in value || "reward" in value);
}

/** What the tokens of a model from scratch are made from. */
export function textsOf({ texts, tasks }: Agent): readonly string[] {
  return texts ?? stringsIn(tasks);
}

function stringsIn(value: unknown): readonly string[] {
  if (typeof value === "string") return [value];
  return typeof value === "object" && value !== null ? Object.values(value).flatMap(stringsIn) : [];
}

const PARTS = [
  ...["name", "tasks", "run", "reward", "filter"],
  ...["maxReturn", "callLimit", "texts"],
];

/** Throws if an agent lacks a part, or has one that is none. */
export function checkAgent(agent: Agent): void {
  const expected =
    "expected { tasks, run(task, model, signal), reward(run) }; defineAgent checks the types";
  const unknown = Object.keys(agent).find((part) => !PARTS.includes(part));
  if (unknown !== undefined)
    throw new UserError(`an agent has no "${unknown}", only ${PARTS.join(", ")}`);
  for (const part of ["run", "reward"] as const)
    if (typeof agent[part] !== "function")
      throw new UserError(`${part} is no function; ${expected}`);
  if (agent.filter !== undefined && typeof agent.filter !== "function")
    throw new UserError(`filter is no function; ${expected}`);
  const { tasks } = agent;
  const isLists = typeof tasks === "object" && tasks !== null && !Array.isArray(tasks);
  if (!isLists || !Object.values(tasks).every(Array.isArray))
    throw new UserError("tasks: expected a list for each split, as { train: [ … ], test: [ … ] }");
  for (const part of ["maxReturn", "callLimit"] as const) {
    const value = agent[part];
    if (value !== undefined && !(typeof value === "number" && value > 0))
      throw new UserError(`${part}: expected a number above 0, got ${JSON.stringify(value)}`);
  }
}

/**
 * Tasks that are worked on with tools of somebody else: of MCP servers, or functions in TypeScript.
 *
 * Each episode has a host of its own, which offers the tools and carries out calls. The tool
 * `answer` is added to them: it ends the episode, and the reward function judges what was done.
 * Hosts may answer at once or later; where they answer at once and can be copied, so can the world.
 */

import { EnvError, type StepResult, type Task } from "@pawl/core/envs/env.js";
import { taskLists } from "@pawl/core/envs/task-lists.js";
import type { RemoteToolEnv, ToolEnv, ToolEnvironment } from "@pawl/core/envs/tool-env.js";
import { isRecord, type Tool, type ToolCall } from "@pawl/core/text/tool.js";
import { asReward, type FinishedTask, type RewardFunction } from "../tasks/rewards.js";
import { NOTHING_YET, readTasks, type TaskRecord, type TaskSource } from "../tasks/task-record.js";
import { after, type Later } from "./later.js";

/** What a call gave. */
export interface CallResult {
  readonly text: string;
  /** The tool could not do it. */
  readonly failed?: boolean;
  /** Judged by the host itself, for `reward: "host"`. */
  readonly judged?: { readonly reward: number; readonly done: boolean; readonly success: boolean };
}

/** Where the tools of one episode live. */
export interface ToolHost {
  readonly tools: readonly Tool[];
  /** What is seen first if the task does not say. */
  readonly instructions?: string | undefined;
  call(call: ToolCall, signal?: AbortSignal): Later<CallResult>;
  close?(): Promise<void>;
  clone?(): ToolHost;
}

/** Judges a finished episode, and may look at its host. */
type HostReward = (
  episode: FinishedTask,
  signal: AbortSignal | undefined,
  host: ToolHost,
) => ReturnType<RewardFunction>;

/** Tasks, tools and a reward. */
export interface ToolTaskWorld {
  readonly name: string;
  readonly splits: Readonly<Record<string, TaskSource>>;
  /** Judges the answer; `host`: the host says with each call what it was worth and when it ends. */
  readonly reward: HostReward | "host";
  readonly stepLimit: number;
  readonly maxReturn: number;
  readonly instructions: string;
  /** Hosts answer at once and can be copied. */
  readonly copies: boolean;
  open(task: TaskRecord, seed: number, signal?: AbortSignal): Later<ToolHost>;
}

/** The tool that ends an episode. */
const ANSWER: Tool = {
  name: "answer",
  description: "Give the final answer. This ends the task.",
  parameters: {
    type: "object",
    properties: { answer: { type: "string" } },
    required: ["answer"],
    additionalProperties: false,
  },
};

/** Opens an environment of tasks with tools. */
export function openToolTasks(world: ToolTaskWorld): ToolEnvironment {
  const { name, stepLimit, maxReturn, instructions } = world;
  const lists = taskLists(
    name,
    Object.fromEntries(
      Object.entries(world.splits).map(([split, source]) => [
        split,
        () => readTasks(split, source),
      ]),
    ),
  );
  const [first] = lists.splits;
  const isTaught = lists.tasks(first!).some((task) => "solution" in task);
  return {
    ...lists,
    name,
    stepLimit,
    maxReturn,
    prompt: { instructions, history: "all" },
    create: () => createRun(world, (task) => lists.task(task.id) as TaskRecord),
    ...(isTaught && { expert: (env) => (env as unknown as Run).next() }),
  };
}

/** An episode's progress. */
interface Progress {
  readonly record: TaskRecord;
  readonly host: ToolHost;
  readonly tools: readonly Tool[];
  readonly calls: ToolCall[];
  readonly observations: string[];
}

/** A running world, with the call that the task's own solution makes next. */
type Run = (ToolEnv | RemoteToolEnv) & { next(): ToolCall };

function createRun(world: ToolTaskWorld, find: (task: Task) => TaskRecord, from?: Progress): Run {
  const { name, reward, maxReturn } = world;
  let progress = from;
  const started = (): Progress => {
    if (progress === undefined) throw new EnvError(`${name}: call reset(task) first`);
    return progress;
  };
  const begin = (record: TaskRecord, host: ToolHost): string => {
    progress = { record, host, tools: offered(name, reward, host), calls: [], observations: [] };
    return record.observation === NOTHING_YET
      ? (host.instructions ?? NOTHING_YET)
      : record.observation;
  };
  const judge = (answer: string, signal?: AbortSignal): Later<StepResult> => {
    const { record: task, host, calls, observations } = started();
    const finished = {
      task,
      actions: calls.map((call) => JSON.stringify(call)),
      answer,
      observations,
      call: (call: ToolCall) => after(host.call(call, signal), ({ text }) => text),
    };
    return after((reward as HostReward)(finished, signal, host), (given) => {
      const { observation = "Done.", reward: worth, ...judged } = asReward(given, maxReturn);
      const { success, score } = judged;
      const info = { valid: true, success, score };
      return { observation, reward: worth, done: true, info };
    });
  };
  const close = async (): Promise<void> => {
    const { host } = progress ?? {};
    progress = undefined;
    await host?.close?.();
  };
  const facts = {
    get goal() {
      return started().record.goal;
    },
    get taskType() {
      return started().record.type;
    },
    tools: () => started().tools,
    irreversible: ({ tool }: ToolCall) => tool === ANSWER.name,
    next: () => nextOf(started()),
    step(call: ToolCall, signal?: AbortSignal): Later<StepResult> {
      const { host, calls, observations } = started();
      calls.push(call);
      if (reward !== "host" && call.tool === ANSWER.name)
        return judge(String(call.arguments.answer), signal);
      return after(host.call(call, signal), ({ text, failed = false, judged }) => {
        observations.push(text);
        const { reward: worth = 0, done = false, success = false } = judged ?? {};
        return { observation: text, reward: worth, done, info: { valid: !failed, success } };
      });
    },
  };
  if (world.copies)
    return Object.assign(facts, {
      reset: (task: Task, seed = 0) => begin(find(task), world.open(find(task), seed) as ToolHost),
      clone: () => createRun(world, find, progress && copyOf(progress)),
    }) as Run;
  return Object.assign(facts, {
    async reset(task: Task, seed = 0, signal?: AbortSignal) {
      await close();
      const record = find(task);
      return begin(record, await world.open(record, seed, signal));
    },
    close,
  }) as Run;
}

/** The tools of an episode. */
function offered(name: string, reward: ToolTaskWorld["reward"], host: ToolHost): readonly Tool[] {
  if (reward === "host") return host.tools;
  if (host.tools.some((tool) => tool.name === ANSWER.name))
    throw new EnvError(
      `${name}: there is a tool named ${ANSWER.name} already, and an episode ends with a tool of that name: rename it`,
    );
  return [...host.tools, ANSWER];
}

const copyOf = ({ host, calls, observations, ...same }: Progress): Progress => ({
  ...same,
  host: host.clone!(),
  calls: [...calls],
  observations: [...observations],
});

/** The next call of the task's `solution`, then its `answer`. */
function nextOf({ record, calls }: Progress): ToolCall {
  const { solution, answer = "" } = record;
  if (!Array.isArray(solution))
    throw new EnvError(`task ${record.id} has no "solution" (a list of calls) to show`);
  const call: unknown = solution[calls.length];
  if (call === undefined) return { tool: ANSWER.name, arguments: { answer: String(answer) } };
  if (!isRecord(call) || typeof call.tool !== "string" || !isRecord(call.arguments))
    throw new EnvError(
      `task ${record.id}: "solution", call ${calls.length + 1}: expected {"tool": NAME, "arguments": {…}}, got ${JSON.stringify(call)}`,
    );
  return { tool: call.tool, arguments: call.arguments };
}

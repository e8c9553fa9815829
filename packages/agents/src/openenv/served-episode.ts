/** The world of one session: reset by split and index, stepped by actions of the protocol. */
import { randomInt, randomUUID } from "node:crypto";
import { boundedEnv, checkAdmissible, checkStep, checkText } from "@pawl/core/envs/bounded-env.js";
import {
  EnvError,
  type Environment,
  isRemote,
  type StepResult,
  type Task,
} from "@pawl/core/envs/env.js";
import { DEFAULT_LIMITS } from "@pawl/core/envs/limits.js";
import { mixSeed } from "@pawl/core/random.js";
import { callText, type Tool, writtenMember } from "@pawl/core/text/tool.js";
import { z } from "zod";
import { type ResetRequest, resetRequest } from "./protocol.js";

/** What a reset or a step answers: the `data` of an observation message. */
export interface ObservationData {
  readonly observation: Readonly<Record<string, unknown>>;
  readonly reward: number | null;
  readonly done: boolean;
}

/** A session's world. */
export interface ServedEpisode {
  readonly hasTools: boolean;
  reset(data: unknown): ObservationData | Promise<ObservationData>;
  /** Carries out an action; `text` is the message as it was written. */
  step(data: unknown, text?: string): ObservationData | Promise<ObservationData>;
  /** Carries out an action that is known to be one. */
  act(action: string): StepResult | Promise<StepResult>;
  state(): object;
  tools(): readonly Tool[];
  instructions(): string;
  over(): boolean;
  close(): Promise<void>;
}

const metadata = z.record(z.string(), z.unknown()).optional();
/** What a step may be, by whether the environment has tools. */
const textAction = z.strictObject({ action: z.string(), metadata });
const toolAction = z.discriminatedUnion("type", [
  z.strictObject({ type: z.literal("list_tools"), metadata }),
  z.strictObject({
    type: z.literal("call_tool"),
    tool_name: z.string(),
    arguments: z.record(z.string(), z.unknown()).default({}),
    metadata,
  }),
]);

/** Seeds that are drawn here can be repeated by every client. */
const MAX_DRAWN_SEED = 2 ** 31 - 1;

interface Playing {
  readonly id: string;
  readonly task: Task;
  readonly index: number;
  readonly seed: number;
  readonly first: string;
  readonly context: string | undefined;
  steps: number;
  total: number;
  done: boolean;
}

/** A world of an environment; the signal ends what it is doing. */
export function serveEpisode(environment: Environment, signal?: AbortSignal): ServedEpisode {
  const { limits = DEFAULT_LIMITS } = environment;
  const env = environment.create();
  const world = boundedEnv(env, limits, signal);
  const hasTools = env.tools !== undefined;
  let playing: Playing | undefined;

  const seen = (text: string, result?: StepResult, tool?: string): ObservationData => {
    const { task } = playing!;
    const { valid, success, score } = result?.info ?? { valid: true, success: false };
    const done = result?.done ?? false;
    const admissible = done ? [] : checkAdmissible(env.admissibleActions?.());
    return {
      observation: {
        text,
        goal: checkText(env.goal, "the goal", limits),
        task: task.id,
        task_type: task.type,
        ...(env.admissibleActions && { admissible_actions: admissible }),
        valid,
        success,
        score: score ?? null,
        ...(tool !== undefined && { tool_name: tool, result: text, error: null }),
        metadata: {},
      },
      reward: result?.reward ?? null,
      done,
    };
  };
  const act = (action: string): StepResult | Promise<StepResult> => {
    if (playing === undefined) throw new EnvError("there is no episode: reset first");
    if (playing.done) throw new EnvError("the episode is over: reset for another one");
    const now = playing;
    // A world that fails is in an unknown state, and this episode is lost.
    playing = undefined;
    return then(world.step(action), (answer) => {
      const result = checkStep(answer, limits);
      playing = now;
      now.steps++;
      now.total += result.reward;
      now.done = result.done;
      return result;
    });
  };
  return {
    hasTools,
    reset(data) {
      const request = resetRequest.parse(data);
      const seed = request.seed ?? randomInt(MAX_DRAWN_SEED);
      const { task, index } = chooseTask(environment, request, seed);
      playing = undefined;
      return then(world.reset(task, seed), (answer) => {
        const first = checkText(answer, "the first observation", limits);
        const id = request.episode_id ?? randomUUID();
        const context = env.initialContext?.();
        playing = { id, task, index, seed, first, context, steps: 0, total: 0, done: false };
        return seen(first);
      });
    },
    step(data, text) {
      if (!hasTools) {
        const { action } = textAction.parse(data);
        return then(act(action), (result) => seen(result.observation, result));
      }
      const asked = toolAction.parse(data);
      if (asked.type === "list_tools") {
        const tools = env.tools!().map(({ name, description, parameters }) => ({
          ...{ name, description, input_schema: parameters },
        }));
        return { observation: { tools, metadata: {} }, reward: null, done: false };
      }
      const written = text === undefined ? undefined : writtenMember(text, "data");
      const values = written === undefined ? undefined : writtenMember(written, "arguments");
      const action = callText({
        tool: asked.tool_name,
        arguments: asked.arguments,
        ...(values !== undefined && { written: values }),
      });
      return then(act(action), (result) => seen(result.observation, result, asked.tool_name));
    },
    act,
    state: () => ({
      episode_id: playing?.id ?? null,
      step_count: playing?.steps ?? 0,
      step_limit: environment.stepLimit,
      ...(playing && {
        task: playing.task.id,
        split: playing.task.split,
        index: playing.index,
        seed: playing.seed,
        return: playing.total,
        done: playing.done,
        initial_context: playing.context ?? null,
        ...(env.maxReturn && { max_return: env.maxReturn() ?? null }),
      }),
    }),
    tools: () => env.tools?.() ?? [],
    instructions: () => (playing === undefined ? "" : `${env.goal}\n\n${playing.first}`),
    over: () => playing?.done ?? false,
    close: async () => {
      if (isRemote(env)) await world.close();
    },
  };
}

/** By id, or by split and index; without an index the seed chooses. */
function chooseTask(
  environment: Environment,
  { task: id, split, index }: ResetRequest,
  seed: number,
): { readonly task: Task; readonly index: number } {
  if (id !== undefined) {
    if (split !== undefined || index !== undefined)
      throw new EnvError("reset takes a task, or a split and an index, not both");
    const task = environment.task(id);
    return { task, index: environment.tasks(task.split).findIndex((one) => one.id === id) };
  }
  const tasks = environment.tasks(split ?? environment.splits[0]!);
  const chosen = index ?? mixSeed(seed, "task") % tasks.length;
  return { task: taskAt(tasks, chosen), index: chosen };
}

/** The task of a list at an index. */
export function taskAt(tasks: readonly Task[], index: number): Task {
  const task = tasks[index];
  if (task === undefined)
    throw new EnvError(`there is no task ${index}: the split has tasks 0 to ${tasks.length - 1}`);
  return task;
}

/** Goes on with an answer, at once if it is there: most worlds answer at once. */
function then<T, U>(answer: T | Promise<T>, go: (answer: T) => U): U | Promise<U> {
  return answer instanceof Promise ? answer.then(go) : go(answer);
}

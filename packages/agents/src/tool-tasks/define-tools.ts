/** Tools in TypeScript, with tasks and a reward, as an environment. */

import { defineToolEnv } from "@pawl/core/envs/define-env.js";
import { EnvError, type EnvKind } from "@pawl/core/envs/env.js";
import { z } from "zod";
import type { FinishedTask, Reward } from "../tasks/rewards.js";
import type { TaskRecord, TaskSource } from "../tasks/task-record.js";
import { type AiTools, callTool, describeTools } from "./ai-tools.js";
import { isLater, type Later } from "./later.js";
import { openToolTasks, type ToolHost } from "./tool-tasks.js";

/** What an environment of tools consists of. */
export interface ToolsWorld<State> {
  readonly name: string;
  readonly summary: string;
  /** Where the tasks of each split come from. */
  readonly splits: Readonly<Record<string, TaskSource>>;
  /** The state that an episode starts with. */
  start(task: TaskRecord, seed: number): Later<State>;
  /** The tools, acting on this state. */
  tools(state: State): AiTools;
  /** What an episode is worth, after the agent has called `answer`. */
  reward(episode: FinishedTask & { readonly state: State }): Later<number | Reward>;
  /** An independent copy of a state. With it, the world can be cloned; tools must answer at once. */
  clone?(state: State): State;
  /** What the agent is told about its work. */
  readonly instructions?: string;
  readonly stepLimit?: number;
  readonly maxReturn?: number;
}

/** A kind of environment from tools such as the AI SDK's `tool()` makes. */
export function defineTools<State>(world: ToolsWorld<State>): EnvKind {
  const { name, summary, splits, stepLimit = 20, maxReturn = 1, clone } = world;
  const atOnce = <T>(value: Later<T>, what: string): T => {
    if (clone === undefined || !isLater(value)) return value as T;
    throw new EnvError(
      `${name}: ${what} answered with a promise, but the world has clone, so it must answer at once: make it synchronous, or leave clone out`,
    );
  };
  const states = new WeakMap<ToolHost, State>();
  const hostOf = (state: State): ToolHost => {
    const tools = world.tools(state);
    const host: ToolHost = {
      tools: describeTools(tools),
      call: (call, signal) => atOnce(callTool(tools, call, signal), `the tool ${call.tool}`),
      ...(clone && { clone: () => hostOf(clone(state)) }),
    };
    states.set(host, state);
    return host;
  };
  return defineToolEnv({
    name,
    summary,
    options: z.strictObject({}),
    open: () =>
      openToolTasks({
        name,
        splits,
        stepLimit,
        maxReturn,
        instructions: world.instructions ?? "You solve tasks with tools, and then give the answer.",
        copies: clone !== undefined,
        reward: (episode, _, host) =>
          atOnce(world.reward({ ...episode, state: states.get(host)! }), "reward"),
        open: (task, seed) => {
          const state = atOnce(world.start(task, seed), "start");
          return isLater(state) ? state.then(hostOf) : hostOf(state);
        },
      }),
  });
}

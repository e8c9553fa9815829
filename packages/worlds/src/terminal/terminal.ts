/**
 * The terminal: tasks in a bash, one command line a step, scored by a hidden test after `exit`. The
 * shell, its programs and its files are all in this process; nothing reaches the real machine. Tasks
 * are made up from a seed, or come as folders of Harbor, which containers can play, too.
 *
 * Splits of made-up tasks: `train`, `valid` and `test` have no family of tasks in common. Clock,
 * process ids and random numbers follow from the episode's seed.
 */
import { defineToolEnv } from "@pawl/core/envs/define-env.js";
import { type Env, EnvError, type Environment, type Task } from "@pawl/core/envs/env.js";
import { DEFAULT_LIMITS } from "@pawl/core/envs/limits.js";
import { taskLists } from "@pawl/core/envs/task-lists.js";
import type { ToolEnvironment } from "@pawl/core/envs/tool-env.js";
import type { EnvPrompt } from "@pawl/core/text/prompt-style.js";
import { program } from "@pawl/core/trust/reach.js";
import { z } from "zod";
import { isInstalled } from "./container.js";
import {
  type ContainerWatched,
  createContainerEnv,
  createContainerToolEnv,
  nextInside,
} from "./container-env.js";
import { harborTasks } from "./harbor-tasks.js";
import { madeTaskOptions, madeTasks, taskKinds } from "./tasks.js";
import {
  createTerminalEnv,
  createTerminalToolEnv,
  nextCommand,
  type Watched,
} from "./terminal-env.js";

const runners = ["process", "docker", "podman"] as const;

/** The options of the terminal. */
const terminalOptions = z.strictObject({
  ...madeTaskOptions,
  tasks: z
    .string()
    .optional()
    .describe("folder of Harbor's tasks to play (default: made-up tasks)"),
  skip: z.boolean().default(false).describe("leave out tasks of the folder that cannot be played"),
  runner: program(z.enum(runners))
    .default("process")
    .describe("what runs commands: the shell in this process, or containers for tasks of a folder"),
  actions: z
    .enum(["text", "tool"])
    .default("text")
    .describe("how to act: command lines as they are, or calls of a tool, bash {command}"),
  reward: z
    .enum(["success", "share"])
    .default("success")
    .describe("what is rewarded: 1 for passing the tests, or the share that they say was reached"),
  noise: z
    .enum(["off", "status"])
    .default("off")
    .describe("end what a command shows with a time, a process and an id, new in every episode"),
  output: z
    .int()
    .min(100)
    .max(100_000)
    .default(4000)
    .describe("longest output shown, in characters; the middle of more is left out"),
});

type Options = z.output<typeof terminalOptions>;

/** The terminal, for the registry. */
export const terminal = defineToolEnv({
  name: "terminal",
  summary: "a bash with tasks and hidden tests, in this process; or Harbor's tasks",
  options: terminalOptions,
  open: (options) => open(options) as ToolEnvironment,
  describe,
  ready({ runner }) {
    if (runner !== "process" && !isInstalled(runner))
      throw new EnvError(
        `terminal: runner: ${runner} is not on the path. Install it, or leave env.runner out`,
      );
  },
});

const terminalPrompt: EnvPrompt = {
  instructions:
    "You work in a terminal: bash on a Linux machine without network. Do what the task says by commands, one line at a time. Each begins in the folder where the last one ended; variables are not kept. When all is done, write exit: only then is your work tested.",
  advice: "First reason step by step about what the files hold and what is left to do",
  history: "all",
};

const STEP_LIMIT = { made: 12, folder: 50 };
/** Containers at once. */
const CONTAINERS = 8;
/** Building an image takes its time. */
const CONTAINER_LIMITS = { ...DEFAULT_LIMITS, stepSeconds: 900, episodeSeconds: 7200 };

function open(options: Options): Environment | ToolEnvironment {
  const { tasks: folder, runner, actions } = options;
  const isTool = actions === "tool";
  refuseIdle(options);
  const common = { name: "terminal", maxReturn: 1, prompt: terminalPrompt };
  if (folder === undefined) {
    const source = madeTasks(options);
    const lists = taskLists("terminal", source.lists);
    const world = { ...options, taskOf: (task: Task) => source.load(lists.task(task.id)) };
    return {
      ...common,
      ...lists,
      stepLimit: STEP_LIMIT.made,
      madeUp: true,
      create: () => (isTool ? createTerminalToolEnv(world) : createTerminalEnv(world)),
      expert: expertOf(isTool),
    } as Environment | ToolEnvironment;
  }
  const source = harborTasks(folder, { inProcess: runner === "process", skip: options.skip });
  const lists = taskLists("terminal", source.lists);
  const shared = { ...common, ...lists, stepLimit: STEP_LIMIT.folder, expertMayFail: true };
  if (runner === "process") {
    const world = { ...options, taskOf: (task: Task) => source.load(lists.task(task.id)) };
    return {
      ...shared,
      create: () => (isTool ? createTerminalToolEnv(world) : createTerminalEnv(world)),
      expert: expertOf(isTool),
    } as Environment | ToolEnvironment;
  }
  const world = {
    ...options,
    program: runner,
    folderOf: (task: Task) => source.folderOf(lists.task(task.id)),
  };
  return {
    ...shared,
    parallel: CONTAINERS,
    limits: CONTAINER_LIMITS,
    create: () => (isTool ? createContainerToolEnv(world) : createContainerEnv(world)),
    expert: expertOf(isTool),
  } as Environment | ToolEnvironment;
}

/** Refuses options that would change nothing. */
function refuseIdle(options: Options): void {
  const { tasks, runner, skip, noise, seed, difficulty, kinds } = options;
  if (runner !== "process" && noise !== "off")
    throw new EnvError(
      `terminal: noise is added by the shell of this process, and runner is ${runner}: leave one of them out.`,
    );
  if (tasks === undefined) {
    if (runner !== "process" || skip)
      throw new EnvError(
        `terminal: ${skip ? "skip" : "runner"} is about tasks of a folder, and these are made up: give one with --env.tasks FOLDER, or leave it out (pawl env export writes made-up tasks as such a folder).`,
      );
    return;
  }
  const idle =
    seed !== 0
      ? "seed"
      : difficulty !== 1
        ? "difficulty"
        : kinds.length < taskKinds.length
          ? "kinds"
          : undefined;
  if (idle !== undefined)
    throw new EnvError(
      `terminal: ${idle} is about made-up tasks, and ${tasks} has tasks of its own: leave one of them out.`,
    );
}

/** The teacher: it follows the task's solution. */
const expertOf = (isTool: boolean) => (env: Env) => {
  const command = commandOf(env as unknown as Partial<Watched & ContainerWatched>);
  return isTool ? { tool: "bash", arguments: { command } } : command;
};

function commandOf(env: Partial<Watched & ContainerWatched>): string {
  if ("inside" in env) return nextInside(env as ContainerWatched);
  if (env.episode === undefined)
    throw new EnvError("The terminal's expert plays terminal environments only, unwrapped.");
  return nextCommand(env.episode);
}

function describe(options: Options): readonly string[] {
  const { tasks, runner, kinds, difficulty, seed } = options;
  if (tasks === undefined)
    return [
      `made-up tasks: ${kinds.join(", ")}; difficulty: ${difficulty}; seed: ${seed}`,
      "generated, so there is nothing to download",
    ];
  const source = harborTasks(tasks, { inProcess: runner === "process", skip: true });
  const problems = source.problems();
  return [
    `tasks in ${tasks}: splits ${Object.keys(source.lists).join(", ")}; ${problems.length} cannot be played`,
    ...problems,
  ];
}

/** Tasks in a bash of this process: one command line a step, until `exit`; then the hidden test scores. */
import { begun, type Env, EnvError, type StepResult, type Task } from "@pawl/core/envs/env.js";
import type { ToolEnv } from "@pawl/core/envs/tool-env.js";
import { withinTime } from "@pawl/core/processes/time-limit.js";
import { mixSeed } from "@pawl/core/random.js";
import type { Tool } from "@pawl/core/text/tool.js";
import { cutMiddle, isExit, observationOf, openingOf, verdictText } from "./observation.js";
import * as files from "./shell/file-system.js";
import { isCommand, nameOf } from "./shell/names.js";
import { parse } from "./shell/parser.js";
import { bytesOfText, cloneSession, runCommand, type Session } from "./shell/session.js";
import { ShellSyntaxError } from "./shell/syntax.js";
import type { TerminalTask } from "./task.js";
import { scoreTask, startTask, type Verdict } from "./tasks-session.js";

/** What the environments of one opened terminal share. */
export interface TerminalWorld {
  taskOf(task: Task): TerminalTask;
  /** The longest output that is shown, in characters. */
  readonly output: number;
  /** Whether a part of what was asked earns a part of the reward. */
  readonly reward: "success" | "share";
  /** Whether what a command shows ends with what no history can tell. */
  readonly noise: "off" | "status";
}

/** The state of an episode. */
export interface Episode {
  readonly task: TerminalTask;
  readonly session: Session;
  /** How many commands of the solution were run, in order. */
  readonly solved: number;
  readonly over: boolean;
}

/** What its teacher sees. */
export interface Watched {
  readonly episode: Episode;
}

/** What agents call instead of writing commands. */
export const BASH_TOOL: Tool = {
  name: "bash",
  description:
    "Runs a command line in bash, in the folder where the last one ended; variables are not kept. exit ends the session.",
  parameters: {
    type: "object",
    properties: { command: { type: "string", description: "the command line" } },
    required: ["command"],
    additionalProperties: false,
  },
};
export const BASH_TOOLS: readonly Tool[] = [BASH_TOOL];

/** The reward of a session that has ended. */
export function endOf(verdict: Verdict, reward: TerminalWorld["reward"]): StepResult {
  const { success, reward: score } = verdict;
  return {
    observation: verdictText(success),
    reward: reward === "share" ? score : Number(success),
    done: true,
    info: { valid: true, success, score },
  };
}

/** The commands of a task's solution, one after the other, then the end. */
export const nextCommand = ({ task, solved }: Episode): string => task.solution[solved] ?? "exit";

/** Seconds that count only for what no limit of the machine's own has met: they break the episode. */
const LONGEST_COMMAND = 30;
const LONGEST_TEST = 120;

const watched = <T>(seconds: number, run: () => T): T =>
  withinTime(
    1000 * seconds,
    run,
    () => new EnvError(`terminal: a command kept this process busy for more than ${seconds} s`),
  );

const BLANK: StepResult = {
  observation: "Expected a command; exit ends the session.",
  reward: 0,
  done: false,
  info: { valid: false, success: false },
};

/** The longest listing of initial files that a world model is given, in observations. */
const CONTEXT = 8;

function createShared(world: TerminalWorld, from: Episode | undefined) {
  let episode = from;
  const current = (asked: string): Episode => begun(episode, "terminal", asked);
  const facts = {
    get goal() {
      return current("goal").task.instruction;
    },
    get taskType() {
      return current("taskType").task.family;
    },
    get episode() {
      return current("the expert");
    },
    reset(task: Task, seed = 0): string {
      const made = world.taskOf(task);
      const session = startTask(made, seed);
      episode = { task: made, session, solved: 0, over: false };
      const { fs } = session.machine;
      const names = files.listFolder(fs, made.folder).map((name) => {
        const { kind } = files.statFile(fs, `${made.folder}/${name}`, false);
        return kind === "folder" ? `${name}/` : name;
      });
      return openingOf(made.folder, names, world.output);
    },
    initialContext(): string {
      const { task } = current("initialContext");
      const texts = Object.entries(task.files).map(([path, text]) => `${path}:\n${text}`);
      return cutMiddle(texts.join("\n"), CONTEXT * world.output);
    },
  };
  const act = (command: string): StepResult => {
    const now = current("step");
    if (now.over)
      throw new EnvError("terminal: step was called after the end; call reset(task) first.");
    if (isExit(command)) {
      episode = { ...now, over: true };
      const verdict = watched(LONGEST_TEST, () => scoreTask(now.task, now.session));
      return endOf(verdict, world.reward);
    }
    if (command.trim() === "") return BLANK;
    // What turns out to be no command changes nothing, not even the clock.
    const failure = likelyFailure(command);
    const { result, session } = watched(LONGEST_COMMAND, () =>
      runCommand(failure !== undefined ? cloneSession(now.session) : now.session, command),
    );
    const valid = result.code !== failure;
    const solved = now.solved + Number(command === now.task.solution[now.solved]);
    if (valid) episode = { ...now, session, solved };
    const text = observationOf(result, world.output);
    return {
      observation: world.noise === "status" && valid ? `${text}\n${statusOf(session)}` : text,
      reward: 0,
      done: false,
      info: { valid, success: false },
    };
  };
  const copy = (): Episode | undefined =>
    episode && { ...episode, session: cloneSession(episode.session) };
  return { facts, act, copy };
}

/** When a command ended, the number of its process, and an id, all different in every episode. */
function statusOf({ machine }: Session): string {
  const time = new Date(machine.time).toISOString().slice(11, 19);
  const id = mixSeed("status", machine.time, machine.process).toString(16).padStart(8, "0");
  return `[${time} pid ${machine.process} id ${id}]`;
}

/** With which code a line fails if it is no command at all: it cannot be read, or is a name that nobody knows. */
function likelyFailure(line: string): 2 | 127 | undefined {
  try {
    const [chain, ...others] = parse(bytesOfText(line));
    if (chain === undefined || others.length + chain.operators.length > 0) return undefined;
    const [only, ...stages] = chain.pipelines[0]!.commands;
    if (only!.type !== "simple" || stages.length + only!.redirects.length > 0) return undefined;
    const name = nameOf(only!);
    return name === undefined || name.includes("/") || isCommand(name) ? undefined : 127;
  } catch (error) {
    // Nested too deeply for the reader: the shell says so.
    if (error instanceof RangeError) return undefined;
    if (error instanceof ShellSyntaxError) return 2;
    throw error;
  }
}

/** A terminal whose actions are command lines. */
export function createTerminalEnv(world: TerminalWorld, from?: Episode): Env & Watched {
  const { facts, act, copy } = createShared(world, from);
  return Object.assign(facts, {
    step: act,
    irreversible: isExit,
    clone: () => createTerminalEnv(world, copy()),
  });
}

/** A terminal whose actions are calls of `bash`. */
export function createTerminalToolEnv(world: TerminalWorld, from?: Episode): ToolEnv & Watched {
  const { facts, act, copy } = createShared(world, from);
  return Object.assign(facts, {
    tools: () => BASH_TOOLS,
    step: ({ arguments: { command } }: { arguments: Readonly<Record<string, unknown>> }) =>
      act(String(command)),
    irreversible: ({ arguments: { command } }: { arguments: Readonly<Record<string, unknown>> }) =>
      isExit(String(command)),
    clone: () => createTerminalToolEnv(world, copy()),
  });
}

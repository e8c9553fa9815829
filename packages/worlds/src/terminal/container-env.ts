/** Harbor's tasks in containers of Docker or Podman, behind the same interface. */
import {
  begun,
  EnvError,
  type RemoteEnv,
  type StepResult,
  type Task,
} from "@pawl/core/envs/env.js";
import type { RemoteToolEnv } from "@pawl/core/envs/tool-env.js";
import { type Container, type ContainerProgram, openContainer } from "./container.js";
import type { HarborFolder } from "./harbor-folder.js";
import { solutionOf } from "./harbor-tasks.js";
import { isExit, observationOf, openingOf } from "./observation.js";
import { BASH_TOOLS, endOf, type TerminalWorld } from "./terminal-env.js";

/** What the environments of one opened folder share. */
export interface ContainerWorld extends Pick<TerminalWorld, "output" | "reward"> {
  readonly program: ContainerProgram;
  folderOf(task: Task): HarborFolder;
}

interface Episode {
  readonly folder: HarborFolder;
  readonly family: string;
  readonly container: Container;
  readonly solution: readonly string[];
  solved: number;
}

/** What its teacher sees. */
export interface ContainerWatched {
  readonly inside: Episode;
}

function createShared(world: ContainerWorld) {
  let episode: Episode | undefined;
  const current = (asked: string): Episode => begun(episode, "terminal", asked);
  const close = async (): Promise<void> => {
    const old = episode;
    episode = undefined;
    await old?.container.close();
  };
  const facts = {
    get goal() {
      return current("goal").folder.instruction;
    },
    get taskType() {
      return current("taskType").family;
    },
    get inside() {
      return current("the expert");
    },
    async reset(task: Task, _seed?: number, signal?: AbortSignal): Promise<string> {
      await close();
      const folder = world.folderOf(task);
      const container = await openContainer(folder, world.program);
      const solution = solutionOf(folder.solution);
      episode = { folder, family: task.type, container, solution, solved: 0 };
      // Nobody waits for it any more.
      if (signal?.aborted) await close();
      const { output } = await current("reset").container.run("pwd; ls -Ap", signal);
      const [at = "/", ...names] = output.trimEnd().split("\n");
      return openingOf(at, names, world.output);
    },
    close,
  };
  const act = async (command: string, signal?: AbortSignal): Promise<StepResult> => {
    const now = current("step");
    if (isExit(command)) {
      const score = Math.min(1, Math.max(0, await now.container.score()));
      await close();
      return endOf({ success: score === 1, reward: score }, world.reward);
    }
    const result = await now.container.run(command, signal);
    now.solved += Number(command === now.solution[now.solved]);
    return {
      observation: observationOf({ ...result, stopped: undefined }, world.output),
      reward: 0,
      done: false,
      info: { valid: command.trim() !== "" && result.code !== 127, success: false },
    };
  };
  return { facts, act };
}

/** The next command of the task's own solution. */
export function nextInside({ inside }: ContainerWatched): string {
  const { solution, solved, folder } = inside;
  if (solution.length === 0)
    throw new EnvError(`terminal: ${folder.path} has no solution/solve.sh for a teacher to follow`);
  return solution[solved] ?? "exit";
}

/** A container whose actions are command lines. */
export function createContainerEnv(world: ContainerWorld): RemoteEnv & ContainerWatched {
  const { facts, act } = createShared(world);
  return Object.assign(facts, { step: act, irreversible: isExit });
}

/** A container whose actions are calls of `bash`. */
export function createContainerToolEnv(world: ContainerWorld): RemoteToolEnv & ContainerWatched {
  const { facts, act } = createShared(world);
  return Object.assign(facts, {
    tools: () => BASH_TOOLS,
    step: (
      { arguments: { command } }: { arguments: Readonly<Record<string, unknown>> },
      signal?: AbortSignal,
    ) => act(String(command), signal),
    irreversible: ({ arguments: { command } }: { arguments: Readonly<Record<string, unknown>> }) =>
      isExit(String(command)),
  });
}

/** A running episode at an AgentGym server. */

import { EnvError, type RemoteEnv, type StepResult, type Task } from "@pawl/core/envs/env.js";
import { isRecord } from "@pawl/core/text/tool.js";
import type { AgentGymServer, WorldId } from "./agentgym-server.js";
import type { Dialect } from "./dialects.js";

/** What the episodes of one opened environment share. */
export interface AgentGymWorld {
  readonly server: AgentGymServer;
  readonly dialect: Dialect;
  /** The goal of every task, where the user names one. */
  readonly goal?: string | undefined;
  /** Worlds that are free again: servers never reap them, and most cannot close them. */
  readonly free: WorldId[];
  /** A task's number at the server; an unknown task is an `EnvError`. */
  numberOf(task: Task): number;
}

interface Playing {
  readonly task: Task;
  readonly goal: string;
  readonly actions: readonly string[];
  /** What AgentGym would call the episode's reward if it ended now. */
  readonly level: number;
  readonly over: boolean;
}

/** Creates an environment. */
export function createAgentGymEnv(world: AgentGymWorld): RemoteEnv {
  const { server, dialect } = world;
  let id: WorldId | undefined;
  let playing: Playing | undefined;
  const started = (): Playing => {
    if (playing === undefined) throw new EnvError("agentgym: call reset(task) first");
    return playing;
  };
  /** A world that failed is not used again. */
  const guarded = async <T>(work: () => Promise<T>): Promise<T> => {
    try {
      return await work();
    } catch (error) {
      const lost = id;
      id = undefined;
      playing = undefined;
      if (lost !== undefined) void server.close(lost);
      throw error;
    }
  };
  return {
    get goal() {
      return started().goal;
    },
    get taskType() {
      return started().task.type;
    },
    async reset(task, _seed, signal) {
      const number = world.numberOf(task);
      playing = undefined;
      return guarded(async () => {
        id ??= world.free.pop() ?? (await server.create(signal));
        const answer = await server.reset(id, number, signal);
        const given = firstOf(answer, dialect);
        const seen = dialect.asksFirst ? await server.observe(id, signal) : given;
        const first = textOf(seen, dialect, "reset");
        const named = dialect.goalField && isRecord(answer) ? answer[dialect.goalField] : undefined;
        const goal =
          world.goal ??
          (typeof named === "string" ? named : (dialect.goal?.exec(first)?.[1]?.trim() ?? first));
        const actions = actionsOf(answer, dialect);
        playing = { task, goal, actions, level: 0, over: false };
        return first;
      });
    },
    async step(action, signal): Promise<StepResult> {
      const now = started();
      if (now.over) throw new EnvError("agentgym: the episode is over; call reset(task)");
      return guarded(async () => {
        const answer = await server.step(id!, action, signal);
        const observation = textOf(answer[dialect.seen], dialect, "step");
        const level = levelOf(answer, dialect);
        const done = doneOf(answer, dialect);
        playing = { ...now, actions: actionsOf(answer, dialect), level, over: done };
        return {
          observation,
          // Levels replace one another, rewards add up.
          reward: level - now.level,
          done,
          info: {
            valid: dialect.actions === undefined || now.actions.includes(action),
            success: level >= 1,
            score: Math.min(1, Math.max(0, level)),
          },
        };
      });
    },
    ...(dialect.actions !== undefined && {
      admissibleActions: () => (started().over ? [] : started().actions),
    }),
    async close() {
      playing = undefined;
      if (id === undefined) return;
      const [done] = [id];
      id = undefined;
      if (!(await server.close(done))) world.free.push(done);
    },
  };
}

function firstOf(answer: unknown, { first }: Dialect): unknown {
  if (first === "list") return Array.isArray(answer) ? answer[0] : undefined;
  if (first === "text") return answer;
  return isRecord(answer) ? answer.observation : undefined;
}

/** An observation, which may be missing or a fault in disguise, but never nothing. */
function textOf(seen: unknown, { faults = [] }: Dialect, call: string): string {
  const text = isRecord(seen) || Array.isArray(seen) ? JSON.stringify(seen) : seen;
  if (typeof text !== "string")
    throw new EnvError(
      `agentgym: ${call} gave no observation. Is it another server than --env.server says?`,
    );
  if (faults.includes(text)) throw new EnvError(`agentgym: ${call} failed at the server: ${text}`);
  return text;
}

function levelOf(answer: Readonly<Record<string, unknown>>, { level, full }: Dialect): number {
  const value = answer[level];
  const number = typeof value === "boolean" ? Number(value) : value;
  if (typeof number !== "number" || !Number.isFinite(number))
    throw new EnvError(`agentgym: step: ${level} is ${JSON.stringify(value)}, expected a number`);
  return number / full;
}

function doneOf(answer: Readonly<Record<string, unknown>>, { over }: Dialect): boolean {
  const given = over.map((name) => answer[name]);
  if (typeof given[0] !== "boolean")
    throw new EnvError(
      `agentgym: step: ${over[0]} is ${JSON.stringify(given[0])}, expected true or false`,
    );
  return given.includes(true);
}

function actionsOf(answer: unknown, { actions }: Dialect): readonly string[] {
  const listed = actions !== undefined && isRecord(answer) ? answer[actions] : undefined;
  if (!Array.isArray(listed)) return [];
  return [...new Set(listed.filter((one): one is string => typeof one === "string"))].sort();
}

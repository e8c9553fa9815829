/**
 * An agent as a kind of environment, so that its runs are configured, recorded, evaluated and
 * replayed like any others. There is no world to step in: the agent's program plays.
 */

import { EnvError, type EnvKind, type Task } from "@pawl/core/envs/env.js";
import { findEnvKind, registerEnv } from "@pawl/core/envs/registry.js";
import type { SelfPlayed } from "@pawl/core/rollout/policy.js";
import { z } from "zod";
import { type Agent, type AgentTask, checkAgent } from "./agent.js";
import type { AgentEnvironment } from "./agent-environment.js";
import { agentPolicy } from "./agent-policy.js";

const DEFAULT_CALL_LIMIT = 32;

/** The kind of environment that an agent is; `name` is for one that has none. */
export function agentKind(agent: Agent, name: string): EnvKind {
  checkAgent(agent);
  return kindOf(agent.name ?? name, () => agent);
}

const registered = new Map<string, Agent>();

/** Makes an agent the environment of its name, or the latest one of that name. */
export function registerAgent(agent: Agent, name: string): EnvKind {
  checkAgent(agent);
  if (!registered.has(name)) registerEnv(kindOf(name, () => registered.get(name)!));
  registered.set(name, agent);
  return findEnvKind(name);
}

/** Kinds of environments that are agents. */
const kinds = new WeakSet<EnvKind>();

/** Whether a kind of environment is an agent. */
export function isAgentKind(kind: EnvKind): boolean {
  return kinds.has(kind);
}

function kindOf(name: string, agent: () => Agent): EnvKind {
  const kind: EnvKind = {
    name,
    summary: "an agent's own program",
    options: z.strictObject({}),
    open: () => openAgent(agent(), name),
  };
  kinds.add(kind);
  return kind;
}

function openAgent(agent: Agent, name: string): AgentEnvironment & SelfPlayed {
  const lists = new Map<string, readonly Task[]>();
  const given = new Map<string, AgentTask>();
  for (const [split, tasks] of Object.entries(agent.tasks))
    lists.set(
      split,
      tasks.map((task, at) => {
        const own = String(task.id ?? at);
        const id = own.startsWith(`${split}/`) ? own : `${split}/${own}`;
        if (given.has(id))
          throw new EnvError(`agent ${name}: two tasks of ${split} are ${task.id}`);
        given.set(id, task);
        return { id, split, type: task.type ?? "task" };
      }),
    );
  const splits = [...lists.keys()];
  const environment: AgentEnvironment & SelfPlayed = {
    agent,
    // What a filter leaves out is in no record, so it could not be answered again.
    repeatable: agent.filter === undefined,
    policy: ({ style, ...model }) =>
      agentPolicy({ environment, ...model, callForm: style.callForm, tokens: style }),
    name,
    splits,
    stepLimit: agent.callLimit ?? DEFAULT_CALL_LIMIT,
    maxReturn: agent.maxReturn ?? 1,
    given: ({ id }) => given.get(id)!,
    tasks(split) {
      const tasks = lists.get(split);
      if (tasks !== undefined) return tasks;
      throw new EnvError(
        `agent ${name} has no split "${split}"; its tasks are in: ${splits.join(", ")}`,
      );
    },
    task(id) {
      const task = lists.get(id.split("/")[0]!)?.find((one) => one.id === id);
      if (task !== undefined) return task;
      throw new EnvError(`agent ${name} has no task "${id}"; ids are such as ${splits[0]}/0`);
    },
    create() {
      throw new EnvError(
        `agent ${name} is a program that asks the model itself, and no world to step in: pawl train and pawl eval --checkpoint run it`,
      );
    },
  };
  return environment;
}

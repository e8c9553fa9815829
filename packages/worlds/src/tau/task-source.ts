/** The task lists of a domain: splits, names and types. */
import { EnvError, type Task } from "@pawl/core/envs/env.js";
import type { OpenDomain } from "./domains.js";
import { readTau1Tasks, readTau2Tasks, type TauTask } from "./tasks.js";
import { isDict, isList } from "./value.js";

/** The tasks of a domain. */
export interface TaskSource {
  /** Task lists by split, made when needed. */
  readonly lists: Readonly<Record<string, () => readonly Task[]>>;
  /** A task by split and its own name. */
  find(split: string, id: string): TauTask;
}

const TAU1_SPLITS = ["train", "dev", "test"] as const;

/** Reads a domain's tasks. */
export function taskSource(domain: OpenDomain): TaskSource {
  return domain.edition === 1 ? tau1Source(domain) : tau2Source(domain);
}

function tau1Source(domain: OpenDomain): TaskSource {
  const { files } = domain;
  const splits = TAU1_SPLITS.filter((split) => files.has(`tasks_${split}.json`));
  if (splits.length === 0)
    throw new EnvError(
      `${files.folder} has no tasks: expected tasks_train.json, tasks_dev.json or tasks_test.json (or with .gz). The original keeps them as Python; write its lists as JSON.`,
    );
  const read = cached((split) =>
    readTau1Tasks(files.json(`tasks_${split}.json`), `${files.folder}/tasks_${split}.json`),
  );
  return {
    lists: Object.fromEntries(
      splits.map((split) => [split, () => listed(domain, split, read(split))]),
    ),
    find: (split, id) => required(read(split), split, id, domain),
  };
}

function tau2Source(domain: OpenDomain): TaskSource {
  const { files } = domain;
  const splits = files.record("split_tasks.json");
  const read = cached((name) =>
    readTau2Tasks(files.json(...name.split(" ")), `${files.folder}/${name.split(" ")[0]}`),
  );
  const byId = new Map<string, TauTask>();
  const load = (...names: readonly string[]): void => {
    for (const task of read(names.join(" "))) if (!byId.has(task.id)) byId.set(task.id, task);
  };
  const find = (split: string, id: string): TauTask => {
    if (byId.size === 0) load("tasks.json", "tasks_base.json");
    // Telecom's many tasks are a file of their own.
    if (!byId.has(id) && files.has("tasks_full.json")) load("tasks_full.json");
    if (!byId.has(id) && files.has("tasks_full.regenerated.json"))
      load("tasks_full.regenerated.json");
    return byId.get(id) ?? required([], split, id, domain);
  };
  const lists = [...splits].map(([split, ids]) => {
    if (!isList(ids) || !ids.every((id) => typeof id === "string"))
      throw new EnvError(`${files.folder}/split_tasks.json: ${split}: expected a list of names`);
    const list = () =>
      listed(
        domain,
        split,
        (ids as string[]).map((id) => find(split, id)),
      );
    return [split, list] as const;
  });
  return { lists: Object.fromEntries(lists), find };
}

function cached(read: (name: string) => readonly TauTask[]): (name: string) => readonly TauTask[] {
  const known = new Map<string, readonly TauTask[]>();
  return (name) => {
    const tasks = known.get(name) ?? read(name);
    known.set(name, tasks);
    return tasks;
  };
}

function required(
  tasks: readonly TauTask[],
  split: string,
  id: string,
  domain: OpenDomain,
): TauTask {
  const found = tasks.find((task) => task.id === id);
  if (found !== undefined) return found;
  throw new EnvError(`${domain.name} has no task "${id}" in ${split}`);
}

function listed(domain: OpenDomain, split: string, tasks: readonly TauTask[]): readonly Task[] {
  return tasks.map((task) => ({ id: `${split}/${task.id}`, split, type: typeOf(domain, task) }));
}

/** Telecom's tasks name their issue; others are of the kind of change that solves them. */
function typeOf(domain: OpenDomain, task: TauTask): string {
  const issue = /^\[(\w+)\]/.exec(task.id)?.[1];
  if (issue !== undefined) return issue;
  const world = domain.tools;
  const writes = new Set(
    task.reference.filter(({ side, name }) => world.changes(side, name)).map(({ name }) => name),
  );
  if (writes.size === 0) return "no_change";
  return writes.size === 1 ? [...writes][0]! : "several_changes";
}

/** What of a scenario is text: the whole of it in τ, its parts in τ². */
export function scenarioParts(task: TauTask): Readonly<Record<string, string>> {
  if (!isDict(task.scenario)) return { instructions: task.scenario };
  const parts = [...task.scenario].filter(([, value]) => typeof value === "string" && value !== "");
  return Object.fromEntries(parts) as Record<string, string>;
}

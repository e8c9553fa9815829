/** Tasks as the data folders hold them, read into one shape for both editions. */
import { EnvError, type Task } from "@pawl/core/envs/env.js";
import type { OpenDomain } from "./domains.js";
import { type Dict, isDict, isList, type Value } from "./value.js";
import type { Side } from "./world.js";

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

/** A call of a tool. */
export interface Call {
  readonly side: Side;
  readonly name: string;
  readonly given: Dict;
}

/** A call of the reference solution. */
interface Reference extends Call {
  /** Names of the arguments that are compared; null: those of the call that was made. */
  readonly compare: readonly string[] | null;
}

/** A check of the final state: the function's answer should be `expected`. */
export interface Assertion extends Call {
  readonly expected: boolean;
}

/** A message of a conversation. */
export type Message =
  | {
      readonly role: Side;
      readonly content: string | null;
      readonly calls: readonly Call[];
    }
  | { readonly role: "tool"; readonly content: string };

/** A task of either edition. */
export interface TauTask {
  readonly id: string;
  /** What the user knows and wants: a text in τ; in τ² also its parts by name. */
  readonly scenario: string | Dict;
  readonly persona: string | null;
  /** What is known about the case where there is no user. */
  readonly ticket: string | null;
  readonly initialData: { readonly side: Side; readonly data: Dict }[];
  readonly initialActions: readonly Call[];
  readonly history: readonly Message[];
  /** The user's tools, if a task restricts them. */
  readonly userTools: readonly string[] | null;
  /** Whether anything is evaluated at all. */
  readonly judged: boolean;
  /** Whether the state at the end counts: a reference of no call says that nothing may change. */
  readonly checksState: boolean;
  readonly reference: readonly Reference[];
  readonly assertions: readonly Assertion[];
  /** What the agent has to say. */
  readonly communicate: readonly string[];
  readonly nlAssertions: readonly string[];
  /** The components whose product is the reward. */
  readonly basis: readonly string[];
}

/** Reads the fields of a record, with errors that say where. */
interface Reader {
  text(name: string): string;
  optionalText(name: string): string | null;
  dict(name: string): Dict | null;
  dicts(name: string): readonly Reader[];
  texts(name: string): readonly string[] | null;
  get(name: string): Value;
}

function reader(value: Value, where: string): Reader {
  const fail = (message: string): never => {
    throw new EnvError(`${where}: ${message}`);
  };
  if (!isDict(value)) return fail("expected an object");
  const get = (name: string): Value => value.get(name) ?? null;
  const optionalText = (name: string): string | null => {
    const one = get(name);
    return one === null || typeof one === "string" ? one : fail(`${name}: expected a text`);
  };
  const list = (name: string): readonly Value[] | null => {
    const one = get(name);
    return one === null || isList(one) ? one : fail(`${name}: expected a list`);
  };
  return {
    get,
    optionalText,
    text: (name) => optionalText(name) ?? fail(`${name} is missing`),
    dict(name) {
      const one = get(name);
      return one === null || isDict(one) ? one : fail(`${name}: expected an object`);
    },
    dicts: (name) => (list(name) ?? []).map((one, at) => reader(one, `${where}, ${name}.${at}`)),
    texts: (name) =>
      list(name)?.map((one) =>
        typeof one === "string" ? one : fail(`${name}: expected a list of texts`),
      ) ?? null,
  };
}

const sideOf = (name: string | null): Side => (name === "user" ? "user" : "assistant");

/** The tasks of a file of τ, numbered. */
export function readTau1Tasks(value: Value, where: string): readonly TauTask[] {
  if (!isList(value)) throw new EnvError(`${where}: expected a list of tasks`);
  return value.map((one, at) => {
    const task = reader(one, `${where}, task ${at}`);
    return {
      id: String(at),
      scenario: task.text("instruction"),
      persona: null,
      ticket: null,
      initialData: [],
      initialActions: [],
      history: [],
      userTools: null,
      judged: true,
      checksState: true,
      reference: task.dicts("actions").map((action) => ({
        side: "assistant",
        name: action.text("name"),
        given: action.dict("kwargs") ?? new Map(),
        compare: null,
      })),
      assertions: [],
      communicate: task.texts("outputs") ?? [],
      nlAssertions: [],
      basis: ["DB", "COMMUNICATE"],
    };
  });
}

/** The tasks of a file of τ²: a list, or an object by id. */
export function readTau2Tasks(value: Value, where: string): readonly TauTask[] {
  const list = isDict(value) ? [...value.values()] : value;
  if (!isList(list)) throw new EnvError(`${where}: expected a list of tasks`);
  return list.map((one, at) =>
    readTau2Task(reader(one, `${where}, task ${at}`), `${where}, task ${at}`),
  );
}

function readTau2Task(task: Reader, where: string): TauTask {
  const part = (of: Reader, name: string): Reader =>
    reader(of.dict(name) ?? new Map(), `${where}, ${name}`);
  const scenario = part(task, "user_scenario");
  const instructions = scenario.get("instructions");
  const initial = part(task, "initial_state");
  const criteria = part(task, "evaluation_criteria");
  const data = part(initial, "initialization_data");
  return {
    id: task.text("id"),
    scenario: typeof instructions === "string" || isDict(instructions) ? instructions : "",
    persona: scenario.optionalText("persona"),
    ticket: task.optionalText("ticket"),
    initialData: (["assistant", "user"] as const).flatMap((side) => {
      const own = data.dict(side === "user" ? "user_data" : "agent_data");
      return own === null ? [] : [{ side, data: own }];
    }),
    initialActions: initial.dicts("initialization_actions").map(functionCall),
    history: initial.dicts("message_history").map(readMessage),
    userTools: task.texts("user_tools"),
    judged: task.dict("evaluation_criteria") !== null,
    checksState: criteria.get("actions") !== null || criteria.get("env_assertions") !== null,
    reference: criteria.dicts("actions").map((action) => ({
      side: sideOf(action.optionalText("requestor")),
      name: action.text("name"),
      given: action.dict("arguments") ?? new Map(),
      compare: action.texts("compare_args"),
    })),
    assertions: criteria.dicts("env_assertions").map((assertion) => ({
      ...functionCall(assertion),
      expected: assertion.get("assert_value") !== false,
    })),
    communicate: criteria.texts("communicate_info") ?? [],
    nlAssertions: criteria.texts("nl_assertions") ?? [],
    basis: criteria.texts("reward_basis") ?? ["DB", "COMMUNICATE"],
  };
}

function functionCall(call: Reader): Call {
  return {
    side: sideOf(call.optionalText("env_type")),
    name: call.text("func_name"),
    given: call.dict("arguments") ?? new Map(),
  };
}

function readMessage(message: Reader): Message {
  const role = message.text("role");
  if (role === "tool") return { role, content: message.optionalText("content") ?? "" };
  const side = sideOf(role);
  const calls = message.dicts("tool_calls").map((call) => ({
    side,
    name: call.text("name"),
    given: call.dict("arguments") ?? new Map(),
  }));
  return { role: side, content: message.optionalText("content"), calls };
}

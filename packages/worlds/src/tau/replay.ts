/**
 * Replays what was recorded by running the originals, and compares every state: hashes, tool
 * outputs, initial states, assertions and rewards.
 */
import { EnvError, type Mismatch, type ReplayResult } from "@pawl/core/envs/env.js";
import { GREETING, STOP } from "./conversation.js";
import type { DomainName, OpenDomain } from "./domains.js";
import {
  evaluate,
  evaluateTau1,
  type Outcome,
  prepare,
  referenceWorld,
  replayMessages,
} from "./evaluate.js";
import type { Assertion, Call, Message, TauTask } from "./tasks.js";
import { type Dict, isDict, isList, jsonText, PyError, parseJson, type Value } from "./value.js";
import { answerText, type Side, type World } from "./world.js";

/** What a replay needs of the environment. */
export interface ReplaySource {
  domain(name: DomainName): OpenDomain;
  /** A task by the recording's name for it. */
  task(domain: DomainName, split: string, id: string): TauTask;
}

/** Replays recorded tasks and sequences, given as the lines of the file. */
export function replayTau(source: ReplaySource, lines: readonly string[]): ReplayResult {
  const comparison = createComparison();
  for (const [at, line] of lines.entries()) {
    const record = parseJson(line);
    if (!isDict(record) || typeof record.get("domain") !== "string")
      throw new EnvError(`record ${at + 1} is no recorded task of tau: it names no domain`);
    const id = record.get("task_id") ?? null;
    const where = `${record.get("domain")} ${id === null ? record.get("sequence") : id}`;
    if (record.has("reference")) replayTau1(source, record, where, comparison);
    else if (id !== null) replayTau2(source, record, where, comparison);
    else replaySequence(source, record, where, comparison);
  }
  return { traces: lines.length, states: comparison.states, mismatches: comparison.mismatches };
}

interface Comparison {
  readonly states: number;
  readonly mismatches: readonly Mismatch[];
  /** Compares one state by what is recorded of it. */
  compare(where: string, expected: Dict, found: Readonly<Record<string, Value | undefined>>): void;
}

function createComparison(): Comparison {
  const mismatches: Mismatch[] = [];
  let states = 0;
  return {
    get states() {
      return states;
    },
    mismatches,
    compare(where, expected, found) {
      states++;
      for (const [name, value] of Object.entries(found)) {
        const recorded = expected.get(name);
        if (recorded === undefined && value === undefined) continue;
        if (
          recorded !== undefined &&
          value !== undefined &&
          jsonText(recorded, true) === jsonText(value, true)
        )
          continue;
        mismatches.push({
          where: `${where}, ${name}`,
          expected: recorded === undefined ? "nothing" : jsonText(recorded),
          found: value === undefined ? "nothing" : jsonText(value),
        });
      }
    },
  };
}

const dicts = (record: Dict, name: string): readonly Dict[] => {
  const value = record.get(name) ?? [];
  if (!isList(value) || !value.every(isDict))
    throw new EnvError(`${name}: expected a list of objects`);
  return value as Dict[];
};

const part = (record: Dict, name: string): Dict => {
  const value = record.get(name);
  if (!isDict(value!)) throw new EnvError(`${name}: expected an object`);
  return value;
};

function hashesOf(world: World): { agent_db_hash: string; user_db_hash: string | null } {
  const { agent, user } = world.hashes();
  return { agent_db_hash: agent, user_db_hash: user };
}

/** Makes a recorded call and compares what it gave and did. */
function replayCall(world: World, record: Dict, where: string, { compare }: Comparison): Message[] {
  const side = (record.get("requestor") ?? "assistant") as Side;
  const name = record.get("name") as string;
  const given = part(record, "arguments");
  const { content, error, errorType } = world.call(side, name, given);
  compare(`${where}, ${name} ${jsonText(given)}`, record, {
    content,
    error,
    error_type: errorType,
    ...hashesOf(world),
  });
  return [
    { role: side, content: null, calls: [{ side, name, given }] },
    { role: "tool", content },
  ];
}

function replaySequence(
  source: ReplaySource,
  record: Dict,
  where: string,
  comparison: Comparison,
): void {
  const world = source.domain(`tau2-${record.get("domain")}` as DomainName).fresh();
  for (const [at, call] of dicts(record, "calls").entries())
    replayCall(world, call, `${where}, call ${at}`, comparison);
}

function replayTau2(
  source: ReplaySource,
  record: Dict,
  where: string,
  comparison: Comparison,
): void {
  const { compare } = comparison;
  const name = `tau2-${record.get("domain")}` as DomainName;
  const domain = source.domain(name);
  const task = source.task(name, record.get("split") as string, record.get("task_id") as string);
  const world = domain.fresh();
  compare(`${where}, pristine`, part(record, "pristine"), hashesOf(world));
  const recordedActions = dicts(record, "init_actions");
  for (const { side, data } of task.initialData) world.merge(side, data);
  for (const [at, { side, name: func, given }] of task.initialActions.entries()) {
    const result = answerText(world.run(side, func, given, true));
    compare(`${where}, initial action ${func}`, recordedActions[at]!, {
      result,
      ...hashesOf(world),
    });
  }
  replayMessages(world, task.history);
  compare(`${where}, after initialisation`, part(record, "after_init"), hashesOf(world));
  const start = world.copy();
  const messages: Message[][] = dicts(record, "calls").map((call, at) =>
    replayCall(world, call, `${where}, call ${at}`, comparison),
  );
  const solved = world.copy();
  for (const [at, recorded] of dicts(record, "env_assertions").entries()) {
    const met = holds(world, task.assertions[at]!);
    compare(`${where}, assertion ${at}`, recorded, { met });
  }
  compare(`${where}, final`, part(record, "final"), hashesOf(world));
  const unsolved = task.assertions.map((one) => attempt(() => holds(start.copy(), one), "Error: "));
  compare(where, record, { env_assertions_unsolved: unsolved });
  const gold = referenceWorld(domain.fresh(), task);
  compare(`${where}, gold`, part(record, "gold"), { ...hashesOf(gold.world), errors: gold.errors });
  replayEvaluations(domain, task, record, messages, where, comparison);
  for (const [at, call] of dicts(record, "perturbed_init").entries())
    replayCall(start.copy(), call, `${where}, perturbed ${at}`, comparison);
  for (const [at, call] of dicts(record, "perturbed_final").entries())
    replayCall(solved, call, `${where}, perturbed at the end ${at}`, comparison);
}

function holds(world: World, { side, name, given, expected }: Assertion): boolean {
  return world.run(side, name, given, true) === expected;
}

function attempt<T>(run: () => T, prefix: string): T | string {
  try {
    return run();
  } catch (error) {
    if (error instanceof PyError)
      return `${prefix === "" ? `${error.type}: ` : prefix}${error.message}`;
    throw error;
  }
}

function replayEvaluations(
  domain: OpenDomain,
  task: TauTask,
  record: Dict,
  calls: readonly Message[][],
  where: string,
  { compare }: Comparison,
): void {
  const recorded = part(record, "evaluation");
  const opening: readonly Message[] =
    task.history.length > 0 ? task.history : [{ role: "assistant", content: GREETING, calls: [] }];
  const summary: Message = {
    role: "assistant",
    content: `Summary: ${task.communicate.join("; ")}`,
    calls: [],
  };
  const stop: Message = { role: "user", content: STOP, calls: [] };
  const conversation = (made: readonly Message[], told = true): readonly Message[] => [
    ...opening,
    ...made,
    ...(told ? [summary] : []),
    stop,
  ];
  const dropped = isDict(recorded.get("drop_one") ?? null)
    ? part(recorded, "drop_one").get("dropped_index")
    : undefined;
  const cases: Record<string, () => Outcome> = {
    reference_plus_communicate: () => judge(conversation(calls.flat())),
    reference_silent: () => judge(conversation(calls.flat(), false)),
    nothing_done: () => judge(conversation([])),
    drop_one: () => judge(conversation(withoutOne(domain, task, Number(dropped)))),
    max_steps: () => judge(conversation(calls.flat()), false),
  };
  const judge = (messages: readonly Message[], ended = true): Outcome =>
    evaluate(domain.fresh, task, messages, ended);
  for (const [name, expected] of recorded) {
    const run = cases[name];
    if (run === undefined || !isDict(expected))
      throw new EnvError(`${where}: unknown evaluation ${name}`);
    const found = attempt(run, "");
    const outcome = typeof found === "string" ? undefined : found;
    compare(`${where}, evaluation ${name}`, expected, {
      raises: typeof found === "string" ? found : undefined,
      reward: outcome === undefined ? null : outcome.reward,
      db_match: outcome?.dbMatch,
      env_assertions: outcome?.assertions as Value | undefined,
      action_checks: outcome?.actions as Value | undefined,
      communicate_checks: outcome?.communicate?.map(
        (met, at): Value =>
          new Map<string, Value>([
            ["info", task.communicate[at]!],
            ["met", met],
          ]),
      ),
      reward_breakdown: outcome?.breakdown && new Map(Object.entries(outcome.breakdown)),
    });
  }
}

/** The reference calls but one, made anew. */
function withoutOne(domain: OpenDomain, task: TauTask, dropped: number): readonly Message[] {
  const world = domain.fresh();
  prepare(world, task);
  replayMessages(world, task.history);
  return task.reference.flatMap(({ side, name, given }: Call, at): Message[] => {
    if (at === dropped) return [];
    const { content } = world.call(side, name, given);
    return [
      { role: side, content: null, calls: [{ side, name, given }] },
      { role: "tool", content },
    ];
  });
}

function replayTau1(
  source: ReplaySource,
  record: Dict,
  where: string,
  { compare }: Comparison,
): void {
  const name = `tau1-${record.get("domain")}` as DomainName;
  const domain = source.domain(name);
  const task = source.task(name, record.get("split") as string, String(record.get("task_id")));
  const step = (world: World, call: Dict, at: string): string => {
    const tool = call.get("name") as string;
    const given = part(call, "arguments");
    if (tool === "respond") return given.get("content") as string;
    const output = world.call("assistant", tool, given).content;
    const hash = call.has("data_hash") ? { data_hash: world.hashes().agent } : {};
    compare(`${at}, ${tool} ${jsonText(given)}`, call, { output, ...hash });
    return "";
  };
  const reference = domain.fresh();
  for (const [at, call] of dicts(record, "reference").entries())
    step(reference, call, `${where}, reference ${at}`);
  compare(where, record, { gt_data_hash: reference.hashes().agent });
  for (const trial of dicts(record, "trials")) {
    const world = domain.fresh();
    const here = `${where}, trial ${trial.get("trial")}`;
    const said = dicts(trial, "calls").map((call, at) => step(world, call, `${here}, call ${at}`));
    const done = trial.get("done") === true;
    const outcome = evaluateTau1(domain.fresh, task, world, said);
    compare(here, trial, {
      final_data_hash: world.hashes().agent,
      reward: done ? outcome.reward : 0,
    });
  }
  for (const [at, call] of dicts(record, "perturbed").entries())
    step(domain.fresh(), call, `${where}, perturbed ${at}`);
}

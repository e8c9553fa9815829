/** Plays and replays episodes: the building blocks of the checks in `conformance.ts`. */
import { isDeepStrictEqual } from "node:util";
import { createRandom, mixSeed, type Random } from "../random.js";
import { boundedEnv } from "./bounded-env.js";
import {
  type Env,
  type Environment,
  isRemote,
  type RemoteEnv,
  type StepResult,
  type Task,
} from "./env.js";
import type { EnvLimits } from "./limits.js";

/** How thoroughly to check. */
export interface EnvCheckOptions {
  /** Tasks to try per split. */
  readonly tasksPerSplit?: number;
  /** Steps of random play per episode, up to the environment's step limit. */
  readonly steps?: number;
  readonly seed?: number;
  /** Actions that must be invalid; an empty list if the environment accepts any text. */
  readonly invalidActions?: readonly string[];
  /** Actions to play with if the environment does not list admissible ones. */
  readonly actions?: readonly string[];
}

/** An environment in this process or behind a server. */
export type AnyEnv = Env | RemoteEnv;

/** What checks share. */
export interface Setup extends Required<EnvCheckOptions> {
  readonly environment: Environment;
  /** The tasks to try. */
  readonly tasks: readonly Task[];
}

/** The visible state of an environment between two steps. */
export interface View {
  readonly goal: string;
  readonly taskType: string;
  readonly admissible: readonly string[] | undefined;
  readonly initialContext: string | undefined;
}

/** One step of a trace. */
interface TraceStep {
  readonly action: string;
  readonly result: StepResult;
  readonly view: View;
}

/** A played episode. */
export interface Trace {
  readonly task: Task;
  readonly seed: number;
  readonly firstObservation: string;
  readonly firstView: View;
  readonly steps: readonly TraceStep[];
}

/** Some tasks of a list: cycles through the task types, evenly spread over the list. */
export function sampleTasks(tasks: readonly Task[], count: number): Task[] {
  const byType = new Map<string, Task[]>();
  for (const task of tasks) {
    const list = byType.get(task.type);
    if (list === undefined) byType.set(task.type, [task]);
    else list.push(task);
  }
  const lists = [...byType.values()];
  const rounds = Math.ceil(count / Math.max(1, lists.length));
  const sample: Task[] = [];
  for (let round = 0; round < rounds; round++) {
    for (const list of lists) {
      const task = list[Math.floor((round * list.length) / rounds)]!;
      if (sample.length < count && !sample.includes(task)) sample.push(task);
    }
  }
  return sample;
}

/** Uses an environment and closes it. */
export async function closing<T>(env: AnyEnv, use: (env: AnyEnv) => Promise<T>): Promise<T> {
  try {
    return await use(env);
  } finally {
    if (isRemote(env)) await env.close();
  }
}

/** The worlds behind those with limits, which are what their teachers know. */
const behind = new WeakMap<AnyEnv, AnyEnv>();

/** A world that answers later, with the limits on its time: a check must not wait for ever. */
export function withinLimits(env: AnyEnv, limits: EnvLimits): AnyEnv {
  if (!isRemote(env)) return env;
  const bounded: RemoteEnv = {
    get goal() {
      return env.goal;
    },
    get taskType() {
      return env.taskType;
    },
    ...(env.admissibleActions && { admissibleActions: () => env.admissibleActions!() }),
    ...(env.initialContext && { initialContext: () => env.initialContext!() }),
    ...(env.maxReturn && { maxReturn: () => env.maxReturn!() }),
    ...(env.clone && {
      clone: async () => withinLimits(await env.clone!(), limits) as RemoteEnv,
    }),
    ...(boundedEnv(env, limits) as RemoteEnv),
  };
  behind.set(bounded, env);
  return bounded;
}

/** What the expert would do. */
export async function askExpert(setup: Setup, env: AnyEnv): Promise<string> {
  const world = behind.get(env) ?? env;
  if (isRemote(world)) await world.prepareTeacher?.();
  return setup.environment.expert!(world);
}

/** The current visible state of an environment. */
export function viewOf(env: AnyEnv): View {
  return {
    goal: env.goal,
    taskType: env.taskType,
    admissible: env.admissibleActions?.().slice(),
    initialContext: env.initialContext?.(),
  };
}

/** An action to play with; undefined if there is none. */
export async function chooseAction(
  setup: Setup,
  env: AnyEnv,
  random: Random,
): Promise<string | undefined> {
  const listed = env.admissibleActions?.() ?? setup.actions;
  if (listed.length > 0) return random.pick(listed);
  return hasExpert(setup, env) ? askExpert(setup, env) : setup.invalidActions[0];
}

/** Whether there is an expert for worlds that can be copied. */
function hasExpert({ environment }: Setup, env: AnyEnv): boolean {
  return environment.expert !== undefined && env.clone !== undefined;
}

/** Plays an episode at random and records everything visible. */
async function play(setup: Setup, env: AnyEnv, task: Task, seed: number): Promise<Trace> {
  const random = createRandom(mixSeed(setup.seed, task.id, seed));
  const firstObservation = await env.reset(task, seed);
  const firstView = viewOf(env);
  const steps: TraceStep[] = [];
  while (steps.length < setup.steps && steps.at(-1)?.result.done !== true) {
    const action = await chooseAction(setup, env, random);
    if (action === undefined) break;
    const result = await env.step(action);
    steps.push({ action, result, view: viewOf(env) });
  }
  return { task, seed, firstObservation, firstView, steps };
}

/** Plays an episode at random in a new environment. */
export function playFresh(setup: Setup, task: Task, seed: number): Promise<Trace> {
  return closing(setup.environment.create(), (env) => play(setup, env, task, seed));
}

/** Throws if two things that must be equal differ; `where` says what was compared. */
export function same(actual: unknown, expected: unknown, where: string): void {
  if (isDeepStrictEqual(actual, expected)) return;
  throw new Error(`${where}: expected ${JSON.stringify(expected)}, got ${JSON.stringify(actual)}`);
}

/** Throws if a condition does not hold. */
export function must(condition: boolean, problem: string): asserts condition {
  if (!condition) throw new Error(problem);
}

/** Compares the state after a reset with the start of a trace. */
export function sameReset(env: AnyEnv, observation: string, trace: Trace, where: string): void {
  const start = `${where}, task ${trace.task.id}, first observation`;
  same(observation, trace.firstObservation, start);
  same(viewOf(env), trace.firstView, `${start}, other visible state`);
}

/** Replays steps `from` to `to` of a trace and compares everything. */
export async function retrace(
  env: AnyEnv,
  trace: Trace,
  where: string,
  from = 0,
  to = trace.steps.length,
): Promise<void> {
  for (let i = from; i < to; i++) {
    const { action, result, view } = trace.steps[i]!;
    const here = `${where}, task ${trace.task.id}, step ${i + 1} ("${action}")`;
    same(await env.step(action), result, here);
    same(viewOf(env), view, `${here}, other visible state`);
  }
}

/** The error that a call on the environment throws; undefined if it does not throw. */
export async function errorOf(run: () => unknown): Promise<string | undefined> {
  try {
    await run();
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/**
 * Plays until the environment says done, using its expert if there is one; undefined if it never
 * does.
 */
export async function playToEnd(
  setup: Setup,
  env: AnyEnv,
  task: Task,
): Promise<string[] | undefined> {
  const { stepLimit } = setup.environment;
  const random = createRandom(mixSeed(setup.seed, task.id));
  await env.reset(task, 0);
  const actions: string[] = [];
  while (actions.length < stepLimit) {
    const byExpert = hasExpert(setup, env);
    const action = await (byExpert ? askExpert(setup, env) : chooseAction(setup, env, random));
    if (action === undefined) return undefined;
    actions.push(action);
    if ((await env.step(action)).done) return actions;
  }
  return undefined;
}

/** Runs `use` on an environment in the middle of an episode that was recorded before. */
export async function midway(
  setup: Setup,
  use: (env: AnyEnv, trace: Trace, middle: number) => Promise<void>,
): Promise<void> {
  for (const task of setup.tasks) {
    const trace = await playFresh(setup, task, 5);
    for (const share of [0, 0.3, 0.7]) {
      const middle = Math.floor(share * trace.steps.length);
      await closing(setup.environment.create(), async (env) => {
        await env.reset(task, 5);
        for (const { action } of trace.steps.slice(0, middle)) await env.step(action);
        await use(env, trace, middle);
      });
    }
  }
}

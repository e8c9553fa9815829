/**
 * Worlds in processes of their own (`env.limits.isolate`): one that loops for ever, ends its process
 * or takes all memory breaks its own episode only. It is no sandbox: the code can do what ours can.
 *
 * The environment is opened here as well, for its task lists and words. Each running world has a
 * process, which is used again for later episodes unless it had to be ended. What a rollout asks
 * between two steps comes with every answer.
 */

import { loadedPlugins } from "../loaded-plugins.js";
import type { Caller } from "../processes/calls.js";
import { startProcess } from "../processes/process-calls.js";
import type { Tool } from "../text/tool.js";
import {
  type EnvConfig,
  EnvError,
  type Environment,
  isRemote,
  type RemoteEnv,
  type StepResult,
  type Teacher,
} from "./env.js";
import { type EnvLimits, ISOLATED_MEGABYTES } from "./limits.js";
import { isBuiltIn } from "./registry.js";

// The processes of isolated worlds: as many as are needed at once, but never more than a limit. Who
// comes when all are in use waits for one.

/** Processes at once; each takes some 60 MB and what the world itself needs. */
export const MAX_PROCESSES = 16;

/** Lends processes to worlds. */
interface WorldProcesses {
  /** A process for one world; waits until there is one. */
  take(signal: AbortSignal): Promise<Caller>;
  /** One at once, for who cannot wait; undefined if all are in use. */
  takeNow(): Caller | undefined;
  /** Keeps a process for the next world, unless it has ended. */
  giveBack(one: Caller): void;
  /** Ends those that are not in use. */
  close(): Promise<void>;
}

/** No processes yet; `start` starts one and says when it is gone. */
export function createWorldProcesses(start: (onGone: () => void) => Caller): WorldProcesses {
  const idle: Caller[] = [];
  const waiting: (() => void)[] = [];
  let alive = 0;
  const takeNow = (): Caller | undefined => {
    for (let one = idle.pop(); one !== undefined; one = idle.pop()) if (!one.ended) return one;
    if (alive >= MAX_PROCESSES) return undefined;
    alive += 1;
    return start(() => {
      alive -= 1;
      waiting.shift()?.();
    });
  };
  return {
    takeNow,
    async take(signal) {
      for (;;) {
        signal.throwIfAborted();
        const one = takeNow();
        if (one !== undefined) return one;
        await new Promise<void>((resolve) => {
          const leave = (): void => {
            waiting.splice(waiting.indexOf(come), 1);
            resolve();
          };
          const come = (): void => {
            signal.removeEventListener("abort", leave);
            resolve();
          };
          waiting.push(come);
          signal.addEventListener("abort", leave, { once: true });
        });
      }
    },
    giveBack(one) {
      if (one.ended) return;
      idle.push(one);
      waiting.shift()?.();
    },
    async close() {
      await Promise.all(idle.splice(0).map((one) => one.end()));
    },
  };
}

/** How long a process may take to load plugins and open its environment. */
const START_SECONDS = 120;
/** Timers count to 2³¹ − 1 milliseconds. */
const LONGEST_TIMER = 2 ** 31 - 1;

/** What a world is opened with, in its process. */
export interface WorldStart {
  /** Paths of the plugins to load. */
  readonly plugins: readonly string[];
  readonly config: EnvConfig;
}

/** A value, or why there is none. */
export type ValueOrError<T> = { readonly value: T } | { readonly error: string };

/** What a world shows between two steps. */
export interface VisibleState {
  readonly goal: ValueOrError<string>;
  readonly taskType: ValueOrError<string>;
  readonly admissibleActions: ValueOrError<readonly string[]>;
  readonly tools: ValueOrError<readonly Tool[]>;
  readonly initialContext: ValueOrError<string | undefined>;
  readonly maxReturn: ValueOrError<number | undefined>;
}

/** What its teachers would do now. */
export type Advice = Readonly<Record<"expert" | "seeker", ValueOrError<string>>>;

/** The same environment, with every running world in a process of its own. */
export function isolatedEnvironment(
  opened: Environment,
  config: EnvConfig,
  limits: EnvLimits,
): Environment {
  refuseOthers(opened, config.name);
  const { whiteSpace, freeText, madeUp, prompt, parallel = MAX_PROCESSES } = opened;
  const start: WorldStart = {
    plugins: loadedPlugins().map(({ path }) => path),
    config: { ...config, limits: { ...limits, isolate: false, isolatedMemory: undefined } },
  };
  const processes = createWorldProcesses((onGone) => startWorld(start, limits, onGone));
  const advice = new WeakMap<object, Advice>();
  const teacher =
    (who: keyof Advice): Teacher =>
    (env) => {
      const now = advice.get(env);
      if (now === undefined) throw new EnvError("call prepareTeacher() before asking a teacher");
      return unwrap(now[who]);
    };
  const inThisThread = (): never => {
    throw new EnvError(
      `${opened.name}: recordings are compared in this process: leave out env.limits.isolate`,
    );
  };
  // What a world offers is known before it runs.
  const offers = opened.create();
  return {
    name: opened.name,
    splits: opened.splits,
    stepLimit: opened.stepLimit,
    maxReturn: opened.maxReturn,
    whiteSpace,
    freeText,
    madeUp,
    prompt,
    limits,
    parallel: Math.min(parallel, MAX_PROCESSES),
    tasks: (split) => opened.tasks(split),
    task: (id) => opened.task(id),
    create: () => isolatedWorld({ offers, limits, processes, advice }),
    async close() {
      await processes.close();
      await opened.close?.();
    },
    ...(opened.expert && { expert: teacher("expert") }),
    ...(opened.seeker && { seeker: teacher("seeker") }),
    ...(opened.traceWorld && { traceWorld: inThisThread }),
    ...(opened.replayRecords && { replayRecords: inThisThread }),
  };
}

/** Refuses what needs worlds in this process. */
export function refuseIsolated({ limits }: Environment, command: string): void {
  if (limits?.isolate)
    throw new EnvError(
      `env.limits.isolate: ${command} looks into worlds in its own process: leave it out`,
    );
}

function refuseOthers(opened: Environment, name: string): void {
  const refuse = (why: string): never => {
    throw new EnvError(`env.limits.isolate: ${why}`);
  };
  if ("agent" in opened) refuse(`${name} is an agent's program, which has no world to isolate`);
  if (isRemote(opened.create()))
    refuse(`worlds of ${name} answer later and are interrupted anyway: leave it out`);
  if (!isBuiltIn(name) && !loadedPlugins().some((one) => one.environments.includes(name)))
    refuse(
      `${name} was registered by this program, and another process cannot load it: put it in a module and name that as a plugin`,
    );
}

function startWorld(
  start: WorldStart,
  { isolatedMemory = ISOLATED_MEGABYTES }: EnvLimits,
  onGone: () => void,
): Caller {
  const world = startProcess({
    entry: "world-worker",
    what: "the world",
    memory: { megabytes: isolatedMemory, name: "env.limits.isolatedMemory" },
    fail: (message, options) => new EnvError(message, options),
    onGone,
  });
  // Calls after it report its error.
  world.call("open", [start]).catch(() => undefined);
  return world;
}

interface WorldParts {
  /** A world that does not run: which methods there are. */
  readonly offers: ReturnType<Environment["create"]>;
  readonly limits: EnvLimits;
  readonly processes: WorldProcesses;
  /** The process of a copy; other worlds take one when they start. */
  readonly own?: Caller;
  /** What the teachers of a world would do. */
  readonly advice: WeakMap<object, Advice>;
}

function isolatedWorld({ offers, limits, processes, advice, own }: WorldParts): RemoteEnv {
  let world: Caller | undefined = own;
  let working = false;
  /** Aborted when the world is closed before it has a process. */
  let queued = new AbortController();
  let shown: VisibleState | undefined;
  /** The episode so far, for copies. */
  let started: Parameters<RemoteEnv["reset"]> | undefined;
  let actions: string[] = [];
  const show = (): VisibleState => {
    if (shown === undefined) throw new EnvError("call reset(task) first");
    return shown;
  };
  const enter = async (signal?: AbortSignal): Promise<Caller> => {
    const place = queued.signal;
    const one = await processes.take(signal ? AbortSignal.any([signal, place]) : place);
    if (place.aborted) processes.giveBack(one);
    place.throwIfAborted();
    return one;
  };
  /** A world that nobody waits for any more is ended, whatever it is doing. */
  const ask = async <T>(method: string, args: readonly unknown[], signal?: AbortSignal) => {
    world ??= await enter(signal);
    const asked = world;
    const end = (): void => {
      world = undefined;
      void asked.end();
    };
    signal?.addEventListener("abort", end, { once: true });
    if (signal?.aborted) end();
    working = true;
    try {
      return (await asked.call(method, args)) as T;
    } finally {
      working = false;
      signal?.removeEventListener("abort", end);
      if (asked.ended && world === asked) world = undefined;
    }
  };
  const env: RemoteEnv = {
    get goal() {
      return unwrap(show().goal);
    },
    get taskType() {
      return unwrap(show().taskType);
    },
    ...(offers.admissibleActions && {
      admissibleActions: () => unwrap(show().admissibleActions),
    }),
    ...(offers.tools && { tools: () => unwrap(show().tools) }),
    ...(offers.initialContext && { initialContext: () => unwrap(show().initialContext) }),
    ...(offers.maxReturn && { maxReturn: () => unwrap(show().maxReturn) }),
    async prepare() {
      await within(START_SECONDS, "opening the environment in a process", (late) =>
        ask("open", [], late),
      );
    },
    async reset(task, seed, signal) {
      shown = undefined;
      advice.delete(env);
      const fresh = started === undefined;
      started = [task, seed];
      actions = [];
      const answer = await ask<{ observation: string; shown: VisibleState }>(
        "reset",
        [task.id, seed, fresh],
        signal,
      );
      shown = answer.shown;
      return answer.observation;
    },
    async step(action, signal) {
      if (world === undefined)
        throw new EnvError("there is no episode, or its world was ended: call reset(task)");
      advice.delete(env);
      actions.push(action);
      const answer = await ask<{ result: StepResult; shown: VisibleState }>(
        "step",
        [action],
        signal,
      );
      shown = answer.shown;
      return answer.result;
    },
    /** Worlds are deterministic: the same actions lead to the same state. */
    async clone() {
      if (started === undefined) throw new EnvError("call reset(task) first");
      // Whoever copies holds a process, so waiting for another one might never end.
      const process = processes.takeNow();
      if (process === undefined)
        throw new EnvError(
          `the world cannot be copied: ${MAX_PROCESSES} isolated worlds are running, which is the limit`,
        );
      const copy = isolatedWorld({ offers, limits, processes, advice, own: process });
      try {
        await copy.reset(...started);
        for (const action of actions) await copy.step(action);
      } catch (error) {
        await copy.close();
        throw error;
      }
      return copy;
    },
    async prepareTeacher() {
      const { stepSeconds } = limits;
      const now = await within(stepSeconds, "a teacher", (late) => ask<Advice>("advice", [], late));
      advice.set(env, now);
    },
    async close() {
      queued.abort(new EnvError("the world was closed before it had a process"));
      queued = new AbortController();
      const left = world;
      world = undefined;
      shown = undefined;
      if (left === undefined) return;
      if (working) await left.end();
      else processes.giveBack(left);
    },
  };
  return env;
}

async function within<T>(
  seconds: number,
  what: string,
  ask: (late: AbortSignal) => Promise<T>,
): Promise<T> {
  const late = AbortSignal.timeout(Math.min(seconds * 1000, LONGEST_TIMER));
  try {
    return await ask(late);
  } catch (error) {
    if (!late.aborted) throw error;
    throw new EnvError(`${what} took longer than ${seconds} s`);
  }
}

function unwrap<T>(given: ValueOrError<T>): T {
  if ("error" in given) throw new EnvError(given.error);
  return given.value;
}

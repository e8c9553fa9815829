/**
 * The official simulator in a JVM: the calls of its Python interface that are used here. One
 * process runs one world at a time.
 */
import { devNull } from "node:os";
import { EnvError } from "@pawl/core/envs/env.js";
import type { JavaArgument, JavaValue } from "./gateway.js";
import { type JvmOptions, startJvm } from "./jvm.js";

const INTERFACE = "scienceworld.runtime.pythonapi.PythonInterface";

/** Making a gold path plays the whole task, which can take minutes. */
const GOLD_SECONDS = 600;

/** A variation of a task, as it is loaded. */
export interface Scene {
  readonly task: string;
  readonly variation: number;
  /** Separated by commas. */
  readonly simplifications: string;
}

/** The simulator's answer to an input. */
export interface Moment {
  readonly observation: string;
  /** From 0 to 1, or −1 after a fatal mistake. */
  readonly rawScore: number;
  /** Whether the task is over. */
  readonly completed: boolean;
  /** Ticks so far. */
  readonly moves: number;
}

/** A running simulator. */
export interface Simulator {
  readonly pid: number;
  readonly alive: boolean;
  /** Whether a call waits for its answer. */
  readonly busy: boolean;
  /** Makes a fresh world. */
  load(scene: Scene): Promise<void>;
  /** Makes a fresh world and returns the actions that solve it; slow. */
  loadGold(scene: Scene): Promise<readonly string[]>;
  step(input: string): Promise<Moment>;
  taskDescription(): Promise<string>;
  /** Looking around and at the inventory without taking time. */
  freeLook(): Promise<string>;
  freeInventory(): Promise<string>;
  freeTaskDescription(): Promise<string>;
  /** Draws from the simulator's generator, as `possibleObjects` does. */
  validActions(): Promise<readonly string[]>;
  possibleActions(): Promise<readonly string[]>;
  possibleObjects(): Promise<readonly string[]>;
  goalProgress(): Promise<string>;
  /** An exception inside the world, after which it answers with nothing else; empty if none. */
  failure(): Promise<string>;
  end(reason: string): void;
}

/** Starts a simulator. */
export async function startSimulator(options: JvmOptions): Promise<Simulator> {
  const jvm = await startJvm(options);
  const { gateway } = jvm;
  try {
    // Every step prints pages.
    const nowhere = await gateway.construct("java.io.PrintStream", [devNull]);
    await gateway.call("z:java.lang.System", "setOut", [nowhere]);
    const world = await gateway.construct(INTERFACE);
    const call = (method: string, args?: readonly JavaArgument[], seconds?: number) =>
      gateway.call(world, method, args, seconds);
    const text = async (method: string, args?: readonly JavaArgument[]): Promise<string> =>
      expect(await call(method, args), "string", method);
    const list = async (method: string): Promise<readonly string[]> => {
      const items = await call(method);
      if (typeof items !== "object" || items === null) throw surprise(items, "a list", method);
      const joined = await gateway.callApart("z:java.lang.String", "join", ["\n", items]);
      await gateway.release(items);
      const lines = expect(joined, "string", method);
      return lines === "" ? [] : lines.split("\n");
    };
    const load = async (scene: Scene, gold: boolean): Promise<void> => {
      const { task, variation, simplifications } = scene;
      const limit = gold ? Math.max(GOLD_SECONDS, options.seconds) : options.seconds;
      await call("load", [task, variation, simplifications, gold], limit);
    };
    return {
      pid: jvm.pid,
      get alive() {
        return jvm.alive;
      },
      get busy() {
        return gateway.busy;
      },
      load: (scene) => load(scene, false),
      async loadGold(scene) {
        await load(scene, true);
        return list("getGoldActionSequence");
      },
      async step(input) {
        // One after another: the JVM's side holds small answers back until the one before is
        // acknowledged, which takes 40 ms unless a next request does it.
        return {
          observation: await text("step", [input]),
          rawScore: expect(await call("getScore"), "number", "getScore"),
          completed: expect(await call("getCompleted"), "boolean", "getCompleted"),
          moves: expect(await call("getNumMoves"), "number", "getNumMoves"),
        };
      },
      taskDescription: () => text("getTaskDescription"),
      freeLook: () => text("freeActionLook"),
      freeInventory: () => text("freeActionInventory"),
      freeTaskDescription: () => text("freeActionTaskDesc"),
      validActions: () => list("getValidActionObjectCombinations"),
      possibleActions: () => list("getPossibleActions"),
      possibleObjects: () => list("getPossibleObjects"),
      goalProgress: () => text("getGoalProgressStr"),
      failure: () => text("errorStr"),
      end: jvm.end,
    };
  } catch (error) {
    jvm.end((error as Error).message);
    throw error;
  } finally {
    jvm.forgetFolder();
  }
}

interface Kinds {
  string: string;
  number: number;
  boolean: boolean;
}

function expect<K extends keyof Kinds>(value: JavaValue, kind: K, method: string): Kinds[K] {
  if (typeof value === kind) return value as Kinds[K];
  throw surprise(value, `a ${kind}`, method);
}

function surprise(value: JavaValue, expected: string, method: string): EnvError {
  return new EnvError(`scienceworld: ${method} gave ${JSON.stringify(value)}, not ${expected}`);
}

/** Simulators, started when needed and kept for the next episode. Each world has one to itself. */
export interface Pool {
  /** A simulator for one world. */
  take(): Promise<Simulator>;
  /** Gives it back: it is kept if it is alive, idle, and not one too many. */
  give(simulator: Simulator): void;
  /** Ends those that are not in use. */
  clear(): void;
}

/** A pool that keeps up to `most` idle simulators. */
export function createPool(most: number, start: () => Promise<Simulator>): Pool {
  const idle: Simulator[] = [];
  return {
    async take() {
      for (let next = idle.pop(); next !== undefined; next = idle.pop()) {
        // One may have died while it was idle.
        if (next.alive) return next;
      }
      return start();
    },
    give(simulator) {
      if (!simulator.alive) return;
      if (simulator.busy) simulator.end("its world was closed while it answered");
      else if (idle.length >= most) simulator.end("it was one too many");
      else idle.push(simulator);
    },
    clear() {
      for (const simulator of idle.splice(0)) simulator.end("the pool was cleared");
    },
  };
}

/**
 * ScienceWorld: experiments of elementary school in a simulated house, by the official simulator in
 * a Java process, without Python.
 *
 * Splits are the original ones; with a file of AgentGym's task numbers also those lists, as
 * published and without the test tasks that are also trained on.
 */

import { defineEnv } from "@pawl/core/envs/define-env.js";
import { EnvError, type Environment, type RemoteEnv, type Task } from "@pawl/core/envs/env.js";
import { taskLists } from "@pawl/core/envs/task-lists.js";
import { didYouMean } from "@pawl/core/text/nearest.js";
import type { EnvPrompt } from "@pawl/core/text/prompt.js";
import { program } from "@pawl/core/trust/reach.js";
import { z } from "zod";
import { findJar, findJava, HOW_TO_INSTALL, type Jar } from "./jvm.js";
import { isExact, replayRecords } from "./replay.js";
import { createScienceEnv, type ScienceEnv } from "./science-env.js";
import { createPool, startSimulator } from "./simulator.js";
import {
  agentgymVariation,
  originalSplits,
  readTaskIds,
  taskKinds,
  type Variation,
  variationsOf,
} from "./tasks.js";

/** A house to experiment in. */
const sciencePrompt: EnvPrompt = {
  instructions: [
    "You carry out a science experiment in a simulated house with a kitchen, a living room, a bedroom, a bathroom, a workshop, a greenhouse, an art studio, a hallway, the outside and a foundry. You act in short commands, one at a time, where OBJ is a thing that you see, hold or know:",
    "open OBJ, close OBJ, go OBJ, look around, look at OBJ, look in OBJ, activate OBJ, deactivate OBJ, pick up OBJ, put down OBJ, move OBJ to OBJ, pour OBJ in OBJ, dunk OBJ in OBJ, mix OBJ, use OBJ on OBJ, connect OBJ to OBJ, disconnect OBJ, read OBJ, eat OBJ, flush OBJ, focus on OBJ, inventory, task, wait (ten turns), wait1 (one turn).",
    "Focus only on what the task tells you to focus on: a wrong focus ends the experiment. If a command is ambiguous, answer with the number of the one that you meant.",
  ].join("\n"),
  advice:
    "First reason step by step about what you know, what the task asks for, and which command brings you closer to it",
};

/** As the Python package's limit of moves; AgentGym plays 50 turns. */
const STEP_LIMIT = 100;

const simplifications = [
  "easy",
  "teleportAction",
  "openDoors",
  "openContainers",
  "noElectricalAction",
  "selfWateringFlowerPots",
] as const;

/** The options of ScienceWorld. */
export const scienceworldOptions = z.strictObject({
  jar: program(z.string())
    .optional()
    .describe(
      "the simulator's jar (default: $SCIENCEWORLD_JAR, or the installed Python package's)",
    ),
  java: program(z.string())
    .optional()
    .describe("Java command (default: $JAVA_HOME/bin/java, or java)"),
  ids: z
    .string()
    .optional()
    .describe(
      'JSON file {"train": [numbers], "test": [numbers]} of AgentGym\'s tasks, for the splits agentgym-train, agentgym-test and agentgym-test-clean',
    ),
  types: z
    .array(z.string())
    .min(1)
    .optional()
    .describe("include only these kinds of tasks, such as boil,find-plant (default: all)"),
  simplifications: z
    .array(z.enum(simplifications))
    .default([])
    .describe("make the world easier: teleportAction, openDoors, …; easy is several at once"),
  validActions: z
    .boolean()
    .default(false)
    .describe(
      "list the valid actions at every step; slow, and draws from the simulator's random generator",
    ),
  context: z
    .boolean()
    .default(false)
    .describe("collect the initial state of all rooms for world models, by a tour at every reset"),
  moveLimit: z
    .int()
    .min(0)
    .default(100)
    .describe("end an episode after this many moves (ticks); 0: no limit"),
  reward: z
    .enum(["score", "success"])
    .default("score")
    .describe("score: points gained, of 1 in all; success: 1 when all are reached"),
  processes: z.int().min(1).default(16).describe("most episodes at once, a Java process each"),
  order: z
    .enum(["fixed", "hash"])
    .default("fixed")
    .describe(
      "before simulator 1.3.0: fixed repeats episodes exactly; hash, the original's, is faster and does not",
    ),
  heap: z.int().min(128).default(256).describe("megabytes of heap of each Java process"),
  timeout: z
    .number()
    .gt(0)
    .max(86_400)
    .default(60)
    .describe("seconds that a Java process may take to start or answer"),
});

type Options = z.output<typeof scienceworldOptions>;

/** ScienceWorld, for the registry. */
export const scienceworld = defineEnv({
  name: "scienceworld",
  summary: "ScienceWorld's experiments by the official simulator, which needs Java",
  options: scienceworldOptions,
  open: openScienceworld,
  describe,
});

/** ScienceWorld, opened. */
export interface ScienceworldEnvironment extends Environment {
  readonly jar: Jar;
  create(): ScienceEnv;
  /** Ends the Java processes that are not in use. */
  endIdle(): void;
}

/** Opens ScienceWorld; Java processes are started when they are needed. */
export function openScienceworld(options: Options): ScienceworldEnvironment {
  const jar = findJar(options.jar);
  const { command: java } = findJava(options.java);
  const { lists, find } = listTasks(options);
  if (options.order === "hash" && isExact(jar.version))
    throw new EnvError(
      `scienceworld: the option order: version ${jar.version} keeps the order of creation: leave hash out`,
    );
  const start = () =>
    startSimulator({
      java,
      jar,
      heap: options.heap,
      // Later versions keep the order by themselves.
      fixedOrder: options.order === "fixed" && !isExact(jar.version),
      seconds: options.timeout,
    });
  const pool = createPool(options.processes, start);
  const { validActions, context, moveLimit, reward } = options;
  const chosen = options.simplifications.join(",");
  const world = {
    pool,
    settings: { validActions, context, moveLimit, reward },
    scene(task: Task) {
      const { kind, variation } = find(task.id);
      return { task: kind.name, variation, simplifications: chosen };
    },
    gold: new Map<string, readonly string[]>(),
    contexts: new Map<string, string>(),
  };
  return {
    name: "scienceworld",
    ...lists,
    jar,
    stepLimit: STEP_LIMIT,
    maxReturn: 1,
    parallel: options.processes,
    whiteSpace: "collapse",
    prompt: sciencePrompt,
    create: () => createScienceEnv(world),
    expert: nextAction,
    async replayRecords(records) {
      const simulator = await pool.take();
      try {
        return await replayRecords(records, simulator, jar.version);
      } finally {
        pool.give(simulator);
        pool.clear();
      }
    },
    endIdle: () => pool.clear(),
  };
}

/** Tasks that need what `noElectricalAction` takes away. */
const ELECTRICAL = /power-component|conductivity/;

function listTasks(options: Options) {
  const names = taskKinds.map(({ name }) => name);
  const unknown = options.types?.find((type) => !names.includes(type));
  if (unknown !== undefined)
    throw new EnvError(
      `scienceworld has no tasks of type "${unknown}"; it has ${names.join(", ")}.${didYouMean(unknown, names)}`,
    );
  const kinds = taskKinds.filter(({ name }) => options.types?.includes(name) ?? true);
  const electrical = kinds.find(({ name }) => ELECTRICAL.test(name));
  if (options.simplifications.includes("noElectricalAction") && electrical !== undefined)
    throw new EnvError(
      `scienceworld: ${electrical.name} cannot be done with noElectricalAction: leave that simplification out, or the electrical tasks with the option types`,
    );
  const variations = new Map<string, Variation>();
  const taskOf = (split: string, id: string, one: Variation): Task => {
    variations.set(`${split}/${id}`, one);
    return { id: `${split}/${id}`, split, type: one.kind.name };
  };
  const original = originalSplits.map((split) => {
    const make = (): readonly Task[] =>
      kinds.flatMap((kind) => {
        const [from, to] = variationsOf(kind, split);
        return Array.from({ length: to - from }, (_, i) => {
          const variation = from + i;
          return taskOf(split, `${kind.name}/${variation}`, { kind, variation });
        });
      });
    return [split, make] as const;
  });
  const ids = options.ids === undefined ? undefined : readTaskIds(options.ids);
  const published = Object.entries(ids ?? {}).map(
    ([list, numbers]: [string, readonly number[]]) => {
      const split = `agentgym-${list === "testClean" ? "test-clean" : list}`;
      const make = (): readonly Task[] =>
        [...new Set(numbers)]
          .map((id) => ({ id, one: agentgymVariation(id) }))
          .filter(({ one }) => kinds.includes(one.kind))
          .map(({ id, one }) => taskOf(split, String(id), one));
      return [split, make] as const;
    },
  );
  const lists = taskLists("scienceworld", Object.fromEntries([...original, ...published]));
  return {
    lists,
    find: (id: string): Variation => variations.get(id) ?? variations.get(lists.task(id).id)!,
  };
}

function describe(options: Options): readonly string[] {
  const lines: string[] = [];
  const tell = (look: () => string): void => {
    try {
      lines.push(look());
    } catch (error) {
      if (!(error instanceof EnvError)) throw error;
      lines.push(error.message);
    }
  };
  tell(() => {
    const { command, version } = findJava(options.java);
    return `Java: ${command} (${version})`;
  });
  tell(() => {
    const { path, version, from } = findJar(options.jar);
    const exact = isExact(version)
      ? "repeats the recorded episodes byte for byte"
      : "repeats itself, but differs from 1.3.0 in the order of things (docs/scienceworld.md)";
    return `simulator: ${version}, ${path} (${from}); ${exact}`;
  });
  lines.push(`to install it: ${HOW_TO_INSTALL}`);
  lines.push(
    "each episode runs in a Java process of some 0.3 GB, whose port on 127.0.0.1 is open to every user of this machine while it runs",
  );
  return lines;
}

/** After the end of the path there is nothing left to do; looking takes no time. */
const NOTHING_LEFT = "look around";

/**
 * The next action of the gold path that has not been taken yet, in order. After actions that are
 * not on it, the expert goes on as if they had changed nothing.
 */
function nextAction(env: RemoteEnv): string {
  if (!("progress" in env))
    throw new EnvError("The scienceworld expert plays scienceworld environments only, unwrapped.");
  const { gold, actions } = (env as ScienceEnv).progress;
  if (gold === undefined)
    throw new EnvError("scienceworld: call prepareTeacher() before asking the expert");
  let at = 0;
  for (const action of actions) if (action === gold[at]) at++;
  return gold[at] ?? NOTHING_LEFT;
}

/** The environment `openenv`: any server that speaks OpenEnv's protocol. */
import { z } from "zod";
import { keyFrom } from "../../http-client.js";
import { address } from "../../reach.js";
import { EnvError, type Environment, type EnvKind, type Task } from "../env.js";
import { taskLists } from "../task-lists.js";
import { type ToolEnvironment, textEnvironment } from "../tool-env.js";
import { holdWaiting } from "./http-dialogue.js";
import { createOpenEnv, type OpenEnvWorld } from "./openenv-env.js";
import { describeServer, type ServerFacts } from "./server-facts.js";

/** The variable with the key of a server. */
const KEY_VARIABLE = "PAWL_OPENENV_KEY";

/** Tasks to train on where a server has no task lists. */
const DEFAULT_SEEDS = 1000;

/** The options of an OpenEnv server. */
export const openenvOptions = z.strictObject({
  url: address(
    z.string().regex(/^(https?|wss?):\/\/[^/]/, "expected http://, https://, ws:// or wss://"),
    KEY_VARIABLE,
  ).describe("address of the server, such as http://127.0.0.1:8000"),
  parallel: z
    .int()
    .min(1)
    .optional()
    .describe("most sessions at once (default: what a server of Pawl's says, otherwise 1)"),
  connectSeconds: z
    .number()
    .gt(0)
    .max(3600)
    .default(30)
    .describe("how long a reset tries to connect, or waits for a free session"),
  seeds: z
    .int()
    .min(1)
    .max(1_000_000)
    .default(DEFAULT_SEEDS)
    .describe("tasks of a server without task lists: train/N is a reset with seed N"),
  goal: z
    .string()
    .min(1)
    .optional()
    .describe("what the agent is told to do (default: what the server says)"),
  maxReward: z
    .number()
    .gt(0)
    .optional()
    .describe("largest return; reaching it is success (default: as the server says, or 1)"),
  steps: z
    .int()
    .min(1)
    .optional()
    .describe("most steps of an episode (default: as the server says, or 50)"),
});

/** The options, parsed. */
export type OpenEnvOptions = z.output<typeof openenvOptions>;

/** Tasks to evaluate on where a server has no task lists. */
const VALID_SEEDS = 100;
const DEFAULT_STEPS = 50;

/** Any OpenEnv server. */
export const openenv: EnvKind<typeof openenvOptions> = {
  name: "openenv",
  summary: "any server that speaks OpenEnv's protocol, such as pawl serve env or a Space",
  options: openenvOptions,
  open: (options) => {
    const partner = { url: httpUrl(options.url), headers: headersOf(), timeoutMs: 30_000 };
    return openOpenEnv(options, holdWaiting(partner, describeServer()));
  },
  describe: ({ url }) => [
    `server: ${url}`,
    `a server that wants a key gets the one in $${KEY_VARIABLE}`,
  ],
};

/** The environment of a server whose facts are known. */
export function openOpenEnv(options: OpenEnvOptions, facts: ServerFacts): Environment {
  const { served } = facts;
  if (facts.splits !== undefined && options.seeds !== DEFAULT_SEEDS)
    throw new EnvError(
      `openenv: seeds: ${options.seeds} are the tasks of a server without task lists, and ${options.url} has lists: leave seeds out`,
    );
  const maxReturn = options.maxReward ?? served?.maxReturn ?? 1;
  const lists = facts.splits === undefined ? seedLists(options.seeds) : listedTasks(facts);
  const world: OpenEnvWorld = {
    facts,
    socket: {
      url: `${httpUrl(options.url).replace(/^http/, "ws")}/ws`,
      headers: headersOf(),
      key: keyOf(),
      connectMs: 10_000,
    },
    retryMs: 1000 * options.connectSeconds,
    goalIsGiven: options.goal !== undefined,
    goal: options.goal ?? (facts.description.trim() || `Act in the environment ${facts.name}.`),
    maxReturn,
    resetData: (task, seed) => lists.resetData(task, seed),
  };
  const environment: Environment | ToolEnvironment = {
    name: "openenv",
    ...lists.tasks,
    stepLimit: options.steps ?? served?.stepLimit ?? DEFAULT_STEPS,
    maxReturn,
    parallel: parallelOf(options, served?.sessions),
    // Any text may be an action of a server that we do not know.
    ...(served === undefined ? !facts.hasTools && { freeText: true } : ownWords(served)),
    create: () => createOpenEnv(world),
  } as Environment | ToolEnvironment;
  return textEnvironment(environment);
}

function parallelOf({ parallel }: OpenEnvOptions, most: number | undefined): number {
  if (parallel !== undefined && most !== undefined && parallel > most)
    throw new EnvError(`parallel: ${parallel} sessions are asked for, and the server has ${most}`);
  return parallel ?? most ?? 1;
}

const ownWords = ({ whiteSpace, freeText, prompt }: NonNullable<ServerFacts["served"]>) => ({
  whiteSpace,
  freeText,
  prompt,
});

interface Lists {
  readonly tasks: Pick<Environment, "splits" | "tasks" | "task">;
  resetData(task: Task, seed: number): Readonly<Record<string, unknown>>;
}

/** The server's own lists; our servers know tasks by id, others by split and index. */
function listedTasks({ splits, served }: ServerFacts): Lists {
  const places = new Map<string, { readonly split: string; readonly index: number }>();
  const lists = taskLists(
    "openenv",
    Object.fromEntries(
      splits!.map(({ name: split, tasks }) => {
        const list = tasks.map(({ id, type = "task" }, index): Task => {
          const own = served && id !== undefined ? id : `${split}/${index}`;
          places.set(own, { split, index });
          return { id: own, split, type };
        });
        return [split, () => list];
      }),
    ),
  );
  return {
    tasks: lists,
    resetData: (task, seed) => ({ ...places.get(lists.task(task.id).id)!, seed }),
  };
}

/** Where a server has no tasks, its seeds are them. */
function seedLists(count: number): Lists {
  const numbers = new Map<string, number>();
  const list = (split: string, from: number, length: number) => () =>
    Array.from({ length }, (_, index): Task => {
      const id = `${split}/${index}`;
      numbers.set(id, from + index);
      return { id, split, type: "task" };
    });
  const lists = taskLists("openenv", {
    train: list("train", 0, count),
    valid: list("valid", count, VALID_SEEDS),
  });
  return {
    tasks: lists,
    resetData: (task) => ({ seed: numbers.get(lists.task(task.id).id)! }),
  };
}

const httpUrl = (url: string): string => url.replace(/^ws/, "http").replace(/\/+$/, "");

const keyOf = (): string | undefined => keyFrom(process.env, [KEY_VARIABLE]);

function headersOf(): Readonly<Record<string, string>> {
  const key = keyOf();
  return key === undefined ? {} : { authorization: `Bearer ${key}` };
}

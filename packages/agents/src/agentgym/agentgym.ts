/** The environment `agentgym`: AgentGym's environment servers, each in its own dialect. */

import { defineEnv } from "@pawl/core/envs/define-env.js";
import { EnvError, type Environment, type Task } from "@pawl/core/envs/env.js";
import { taskLists } from "@pawl/core/envs/task-lists.js";
import { address } from "@pawl/core/trust/reach.js";
import { z } from "zod";
import { createAgentGymEnv } from "./agentgym-env.js";
import { agentGymServer } from "./agentgym-server.js";
import { dialects } from "./dialects.js";

const MAX_TASKS = 1_000_000;

const numbers = z
  .string()
  .regex(/^\d{1,9}(-\d{1,9})?(,\d{1,9}(-\d{1,9})?)*$/, "expected numbers, such as 0-99,120");

/** The options of an AgentGym server. */
const agentgymOptions = z.strictObject({
  url: address(z.string().regex(/^https?:\/\/[^/]/, "expected http:// or https://")).describe(
    "address of the server, such as http://127.0.0.1:36001",
  ),
  server: z
    .enum(Object.keys(dialects) as [string, ...string[]])
    .describe("which of AgentGym's servers it is: they have no common schema"),
  train: numbers.default("0-99").describe("AgentGym's numbers of the tasks to train on"),
  test: numbers.optional().describe("the same of the tasks to evaluate on"),
  parallel: z.int().min(1).default(4).describe("most episodes at once"),
  goal: z
    .string()
    .min(1)
    .optional()
    .describe("what the agent is told to do (default: what the task says)"),
  instructions: z
    .string()
    .min(1)
    .optional()
    .describe("how to act, in words (default: a few of ours; the servers do not say)"),
  steps: z.int().min(1).default(30).describe("most steps of an episode"),
});

/** AgentGym's servers. */
export const agentgym = defineEnv({
  name: "agentgym",
  summary:
    "AgentGym's environment servers: ALFWorld, SciWorld, BabyAI, TextCraft and eleven others",
  options: agentgymOptions,
  open,
  describe: ({ url, server }) => [`server: ${server} at ${url}`],
});

function open(options: z.output<typeof agentgymOptions>): Environment {
  const dialect = dialects[options.server]!;
  const { train, test } = options;
  const byId = new Map<string, number>();
  const list = (split: string, given: string) => (): readonly Task[] =>
    readNumbers(given).map((number) => {
      const id = `${split}/${number}`;
      byId.set(id, number);
      return { id, split, type: options.server };
    });
  const lists = taskLists("agentgym", {
    train: list("train", train),
    ...(test !== undefined && { test: list("test", test) }),
  });
  const world = {
    server: agentGymServer(options.url.replace(/\/+$/, ""), dialect),
    dialect,
    goal: options.goal,
    free: [],
    numberOf: (task: Task) => byId.get(lists.task(task.id).id)!,
  };
  return {
    name: "agentgym",
    ...lists,
    stepLimit: options.steps,
    maxReturn: 1,
    parallel: options.parallel,
    ...(dialect.actions === undefined && { freeText: true }),
    prompt: { instructions: options.instructions ?? dialect.instructions },
    create: () => createAgentGymEnv(world),
  };
}

/** The numbers of `0-3,7`, each once. */
function readNumbers(text: string): readonly number[] {
  const found = new Set<number>();
  for (const part of text.split(",")) {
    const [from, to = from] = part.split("-").map(Number) as [number, number?];
    if (to < from || to - from >= MAX_TASKS)
      throw new EnvError(`agentgym: tasks ${part}: expected at most ${MAX_TASKS}, in order`);
    for (let number = from; number <= to; number++) found.add(number);
  }
  return [...found];
}

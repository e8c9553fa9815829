/**
 * StableToolBench: questions answered by calling thousands of web APIs, which its server simulates.
 * The server, the questions and a judge are the user's; nothing of them is here.
 */
import { z } from "zod";
import { keyFrom } from "../../http-client.js";
import { address, variable } from "../../reach.js";
import { chatEndpointOptions } from "../chat-endpoint.js";
import { defineToolEnv } from "../define-env.js";
import { EnvError, type Task } from "../env.js";
import { taskLists } from "../task-lists.js";
import type { ToolEnvironment } from "../tool-env.js";
import { type Question, questionFiles, readQuestions } from "./questions.js";
import { createToolbenchEnv, type ToolbenchWorld } from "./toolbench-env.js";

const STEP_LIMIT = 12;
const ABOUT =
  "The server is server/main.py of StableToolBench (THUNLP-MT/StableToolBench); the questions are its solvable_queries folder.";

/** The options of StableToolBench. */
const toolbenchOptions = z.strictObject({
  data: z
    .string()
    .optional()
    .describe(
      "folder with its question files, such as solvable_queries (default: $TOOLBENCH_DATA)",
    ),
  server: address(z.url({ protocol: /^https?$/ }))
    .default("http://127.0.0.1:8080/virtual")
    .describe("address of the server's virtual call"),
  keyVariable: variable(z.string())
    .default("TOOLBENCH_KEY")
    .describe("environment variable with the key that the server wants; empty if it is unset"),
  timeoutMs: z.number().positive().default(60_000).describe("time-out of a call in milliseconds"),
  retries: z.int().min(0).default(2).describe("retries after a failed call"),
  judge: chatEndpointOptions
    .optional()
    .describe("chat model that decides whether an answer solves the question"),
  judged: z
    .boolean()
    .default(true)
    .describe("whether answers are judged; no: every reward is 0, to only collect responses"),
});

type Options = z.output<typeof toolbenchOptions>;

/** StableToolBench, for the registry. */
export const toolbench = defineToolEnv({
  name: "toolbench",
  summary: "questions to answer with simulated web APIs (StableToolBench's server)",
  options: toolbenchOptions,
  open,
  describe,
});

function filesOf(options: Options): ReadonlyMap<string, string> {
  const data = options.data ?? (process.env.TOOLBENCH_DATA || undefined);
  if (data === undefined)
    throw new EnvError(
      `toolbench: set data (or TOOLBENCH_DATA) to the folder with the questions. ${ABOUT}`,
    );
  return questionFiles(data);
}

function open(options: Options): ToolEnvironment {
  const { judge, judged } = options;
  if (judged && judge === undefined)
    throw new EnvError(
      "toolbench: a judge decides whether an answer is right: set judge.baseUrl and judge.model, or judged: false to only collect responses",
    );
  if (!judged && judge !== undefined)
    throw new EnvError("toolbench: judged: false contradicts judge; give only one of them");
  const questions = new Map<string, Question>();
  const lists = [...filesOf(options)].map(([split, path]) => {
    const list = (): readonly Task[] =>
      readQuestions(path).map((question) => {
        const id = `${split}/${question.id}`;
        questions.set(id, question);
        return { id, split, type: question.category };
      });
    return [split, list] as const;
  });
  const tasks = taskLists("toolbench", Object.fromEntries(lists));
  const world: ToolbenchWorld = {
    server: new URL(options.server),
    key: keyFrom(process.env, [options.keyVariable]) ?? "",
    timeoutMs: options.timeoutMs,
    retries: options.retries,
    judge,
    questionOf({ id }) {
      const { type } = tasks.task(id);
      return { question: questions.get(id)!, type };
    },
  };
  return {
    name: "toolbench",
    ...tasks,
    stepLimit: STEP_LIMIT,
    maxReturn: 1,
    prompt: {
      instructions:
        "You answer a user's query by calling tools, one at a time. Call Finish last: with an answer that tells the user everything, or to give up if the tools do not work.",
    },
    create: () => createToolbenchEnv(world),
  };
}

function describe(options: Options): readonly string[] {
  const files = [...filesOf(options)].map(
    ([split, path]) => `${split}: ${readQuestions(path).length} questions (${path})`,
  );
  return [...files, `calls go to ${options.server}`, ABOUT];
}

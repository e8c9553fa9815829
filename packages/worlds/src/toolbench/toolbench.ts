/**
 * StableToolBench: questions answered by calling thousands of web APIs, which its server simulates.
 * The server, the questions and a judge are the user's; nothing of them is here.
 */

import {
  askEndpoint,
  type ChatEndpoint,
  chatEndpointOptions,
} from "@pawl/core/envs/chat-endpoint.js";
import { defineToolEnv } from "@pawl/core/envs/define-env.js";
import { EnvError, type StepResult, type Task } from "@pawl/core/envs/env.js";
import { taskLists } from "@pawl/core/envs/task-lists.js";
import type { RemoteToolEnv, ToolEnvironment } from "@pawl/core/envs/tool-env.js";
import { UserError } from "@pawl/core/errors.js";
import { keyFrom, postJson } from "@pawl/core/http/http-client.js";
import { argumentsText, isRecord, type ToolCall } from "@pawl/core/text/tool.js";
import { address, variable } from "@pawl/core/trust/reach.js";
import { z } from "zod";
import { jsonText, parseJson } from "../tau/value.js";
import { FINISH, type Question, questionFiles, readQuestions } from "./questions.js";

// Whether an answer solves a question, by a chat model, in StableToolBench's two steps: first the
// final answer alone; if the judge is unsure, the whole course of the episode.

/** What a judge can say, and what it is worth in the benchmark's solve rate. */
const VERDICTS = { Solved: 1, Unsure: 0.5, Unsolved: 0 } as const;

/** A judge's verdict. */
type Verdict = keyof typeof VERDICTS;

const RULES = [
  "You judge whether an answer solves a user's query.",
  "Solved: the answer gives what the query asks for, all of it. Unsolved: it refuses, fails, gives nothing of use, or leaves a part out. Unsure: what you see does not decide it.",
  "End with one line: VERDICT: Solved, VERDICT: Unsolved or VERDICT: Unsure.",
].join("\n");

/** Asks the judge. */
async function judgeAnswer(
  judge: ChatEndpoint,
  query: string,
  answer: string,
  course: string,
  signal?: AbortSignal,
): Promise<Verdict> {
  if (answer.trim() === "") return "Unsolved";
  const ask = async (shown: string): Promise<Verdict> => {
    const content = `${RULES}\n\nQuery:\n${query}\n\n${shown}`;
    const reply = await askEndpoint(judge, [{ role: "user", content }], { seed: 0, signal });
    return verdictOf(reply.content);
  };
  const first = await ask(`Answer:\n${answer}`);
  return first === "Unsure" ? ask(`What was done:\n${course}\n\nAnswer:\n${answer}`) : first;
}

/** The last verdict of a text; none is an error, which breaks the episode. */
export function verdictOf(text: string): Verdict {
  const found = [...text.matchAll(/\b(Solved|Unsolved|Unsure)\b/gi)].at(-1)?.[1]?.toLowerCase();
  const verdict = (Object.keys(VERDICTS) as Verdict[]).find((one) => one.toLowerCase() === found);
  if (verdict !== undefined) return verdict;
  throw new EnvError(
    `toolbench: the judge should end with VERDICT: Solved, Unsolved or Unsure, and said ${JSON.stringify(text.slice(-80))}`,
  );
}

/** What the environments of one opened benchmark share. */
interface ToolbenchWorld {
  readonly server: URL;
  readonly key: string;
  readonly timeoutMs: number;
  readonly retries: number;
  /** Who decides about answers; without one they are worth nothing. */
  readonly judge: ChatEndpoint | undefined;
  questionOf(task: Task): { readonly question: Question; readonly type: string };
}

/** Longer responses are cut, as the benchmark's client does. */
const LONGEST = 1024;

/** A running episode. */
function createToolbenchEnv(world: ToolbenchWorld): RemoteToolEnv {
  let current: ReturnType<ToolbenchWorld["questionOf"]> | undefined;
  let course: string[] = [];
  let live = false;
  const asked = (): Question => {
    if (current === undefined)
      throw new EnvError("toolbench: call reset(task) first; nothing was asked yet");
    return current.question;
  };
  const finish = async (call: ToolCall, signal?: AbortSignal): Promise<StepResult> => {
    const { return_type: type, final_answer: answer } = call.arguments;
    if (type === "give_up_and_restart") return result("You gave up.", true, 0);
    if (type !== "give_answer" || typeof answer !== "string")
      return result(
        'Expected return_type: "give_answer" with a final_answer, or "give_up_and_restart".',
        false,
      );
    if (world.judge === undefined) return result("The answer was given.", true, 0);
    const verdict = await judgeAnswer(
      world.judge,
      asked().query,
      answer,
      course.join("\n"),
      signal,
    );
    return result(`The answer was given: ${verdict}.`, true, VERDICTS[verdict]);
  };
  return {
    checksCalls: true,
    get goal() {
      return asked().query;
    },
    get taskType() {
      asked();
      return current!.type;
    },
    tools: () => asked().tools,
    irreversible: ({ tool }) => tool === FINISH,
    async reset(task) {
      current = world.questionOf(task);
      course = [];
      live = true;
      return current.question.query;
    },
    async step(call, signal) {
      if (!live) throw new EnvError("toolbench: the episode is over; call reset(task) first");
      const step =
        call.tool === FINISH
          ? await finish(call, signal)
          : await request(world, asked(), call, signal);
      course.push(`${call.tool} ${argumentsText(call)}\n${step.observation}`);
      live = !step.done;
      return step;
    },
    close: async () => undefined,
  };
}

/** A step's result; a score ends the episode. */
function result(observation: string, valid: boolean, score?: number): StepResult {
  return {
    observation,
    reward: score ?? 0,
    done: score !== undefined,
    info: { valid, success: score === 1, score },
  };
}

async function request(
  world: ToolbenchWorld,
  question: Question,
  call: ToolCall,
  signal?: AbortSignal,
): Promise<StepResult> {
  const address = question.addresses.get(call.tool);
  if (address === undefined)
    return result(
      jsonText(
        new Map([
          ["error", `No such function name: ${call.tool}`],
          ["response", ""],
        ]),
      ),
      false,
    );
  const body = {
    category: address.category,
    tool_name: address.tool,
    api_name: address.api,
    tool_input: argumentsText(call),
    strip: "",
    toolbench_key: world.key,
  };
  const { timeoutMs, retries } = world;
  try {
    const answer = await postJson(
      { url: world.server, body, timeoutMs, retries, backoffMs: 500, signal },
      (json) => {
        if (!isRecord(json) || !("error" in json) || !("response" in json))
          throw new Error('expected {"error", "response"}');
        return json;
      },
    );
    const text = jsonText(parseJson(JSON.stringify(answer)));
    return result(
      text.length > LONGEST ? `${text.slice(0, LONGEST)}...` : text,
      answer.error === "",
    );
  } catch (error) {
    signal?.throwIfAborted();
    if (error instanceof UserError)
      throw new EnvError(`toolbench: ${error.message}`, { cause: error });
    throw error;
  }
}

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

/**
 * Search QA: a question, a search engine, and one answer within four turns. With question files it
 * is the benchmark of the paper's table 2; without them the questions are about a made-up world.
 *
 * Splits with files: `train` (NQ and HotpotQA, if their training questions are there), `test` (all
 * available data sets, interleaved, so that results break down as in the table) and each data set
 * on its own. Anything can be searched for and answered, so actions are listed only for the made-up
 * world.
 */

import { defineEnv } from "@pawl/core/envs/define-env.js";
import { type Env, EnvError, type Environment, type Task } from "@pawl/core/envs/env.js";
import { taskLists } from "@pawl/core/envs/task-lists.js";
import { UserError } from "@pawl/core/errors.js";
import type { EnvPrompt, PromptPiece, PromptView } from "@pawl/core/text/prompt.js";
import { collector, count, type SlotOptions, sayMemory } from "@pawl/core/text/prompt-style.js";
import { address, folder } from "@pawl/core/trust/reach.js";
import { z } from "zod";
import { memoryCorpus } from "../retrieval/corpus.js";
import type { Retriever } from "../retrieval/retriever.js";
import { openRetriever } from "../retrieval/retriever-open.js";
import {
  dataSets,
  findCorpus,
  findQuestionFiles,
  type Question,
  type QuestionBook,
  readQuestions,
} from "./question-file.js";
import {
  createSearchEnv,
  createWaitingSearchEnv,
  RIGHT_REWARD,
  type SearchEnv,
  writeAction,
} from "./search-env.js";
import { type KnowledgeWorld, makeWorld, type WorldOptions } from "./world.js";
import { worldQuestions } from "./world-questions.js";
import { relationNames } from "./world-relations.js";

// What search QA tells a policy: a question, and what was asked and found so far.

const instructions =
  "You answer a question one step at a time. At every step you either ask a search engine or give your final answer.";

/** Questions with a search engine. */
export const searchPrompt: EnvPrompt = {
  instructions,
  answer:
    "If knowledge is missing, write a query between <search> and </search>. If you are sure, write the answer alone, without explanation, between <answer> and </answer>.",
  history: "all",
  actionTags: ["search", "answer"],
  around: ["<information>", "</information>"],
  render,
};

function render(view: PromptView, slots: SlotOptions): readonly PromptPiece[] {
  const { pieces, say } = collector();
  say("template", `${instructions}\n\nThe question:\n`);
  say("task", view.goal);
  sayMemory(view, say);
  if (view.firstObservation !== "" && view.firstObservation !== view.goal) {
    say("template", "\n\nWhat you were given at the start:\n");
    say(view.index === 0 ? "observation" : "history", view.firstObservation);
  }
  if (view.index > 0)
    say(
      "template",
      `\n\nYou have taken ${count(view.index, "step")} so far. What you asked stands between <search> and </search>, what the search engine returned between <information> and </information>:\n`,
    );
  // The latest result is the current observation and is shown for any history length.
  const length = slots.history === "all" ? view.steps.length : Math.max(1, slots.history);
  for (const step of view.steps.slice(-length)) {
    say("template", "\n");
    say("history", step.action);
    say("template", "\n<information>");
    say(step === view.steps.at(-1) ? "observation" : "history", step.observation);
    say("template", "</information>");
  }
  say(
    "template",
    "\n\nFirst reason about what you know and what is still missing, between <think> and </think>. Then do exactly one of two things. If knowledge is missing, write a query between <search> and </search>. If you are sure, write the answer alone, without explanation, between <answer> and </answer>, for example <answer>Lisbon</answer>.",
  );
  return pieces;
}

const TURNS = 4;
const MADE_UP = "made-up";
/** Options that say how the world is made up. */
const MADE_UP_ONLY = ["size", "hops", "relations", "names", "seed"] as const;

/** The options of search QA. */
export const searchOptions = z.strictObject({
  data: z
    .string()
    .optional()
    .describe(
      `folder with question files such as nq-test.jsonl.gz; ${MADE_UP} for the made-up world (default: $SEARCHQA_DATA, or ${MADE_UP})`,
    ),
  corpus: z
    .string()
    .optional()
    .describe("JSONL file of {id, contents} to search (default: the one in the data folder)"),
  retriever: address(z.string())
    .default("bm25")
    .describe("bm25, dense, or the URL of a retriever, such as http://127.0.0.1:8000/retrieve"),
  encoder: address(z.string(), "OPENAI_API_KEY")
    .optional()
    .describe("dense only: folder with tokenizer.json and model.onnx, or an embeddings endpoint"),
  encoderModel: z.string().optional().describe("model name on the embeddings endpoint"),
  prefixes: z
    .enum(["none", "e5"])
    .default("none")
    .describe("dense only: what the encoder needs before texts (e5: query: and passage:)"),
  topk: z.int().min(1).max(100).default(3).describe("passages per search"),
  size: z.int().min(40).max(100_000).default(400).describe("made-up world: number of entities"),
  hops: z
    .enum(["one", "two", "both"])
    .default("both")
    .describe("made-up world: facts needed to answer a question"),
  relations: z
    .array(z.enum(relationNames))
    .min(1)
    .optional()
    .describe(
      `made-up world: the facts that there are, of ${relationNames.join(", ")} (default: all)`,
    ),
  names: z
    .enum(["own", "shared"])
    .default("own")
    .describe(
      "made-up world: towns, rivers and languages have words of their own, or share them, so that small models meet each often",
    ),
  seed: z.int().min(0).max(0xffffffff).default(1).describe("made-up world: random seed"),
  cache: folder(z.string())
    .optional()
    .describe("cache folder for the index or vectors of a large corpus (default: ~/.cache/pawl)"),
});

type Options = z.output<typeof searchOptions>;

/** Search QA, for the registry. */
export const search = defineEnv({
  name: "search",
  summary: "questions to answer with a search engine, one hop or two",
  options: searchOptions,
  open,
  describe,
});

/** The passages of the made-up world with these options. */
export function madeUpCorpus(options: WorldOptions) {
  return corpusOf(options, makeWorld(options));
}

function corpusOf(options: WorldOptions, { passages }: KnowledgeWorld) {
  const { size, seed, names = "own", relations = [] } = options;
  const key = [seed, size, ...(names === "own" ? [] : [names]), ...relations].join(" ");
  return memoryCorpus(`the made-up world ${seed} of ${size} things`, key, passages);
}

function dataOf(options: Options): string | undefined {
  const data = options.data ?? (process.env.SEARCHQA_DATA || undefined);
  return data === MADE_UP ? undefined : data;
}

function open(options: Options): Environment {
  const data = dataOf(options);
  try {
    return data === undefined ? openMadeUp(options) : openData(options, data);
  } catch (error) {
    if (!(error instanceof UserError) || error instanceof EnvError) throw error;
    throw new EnvError(`search: ${error.message}`, { cause: error });
  }
}

function openMadeUp(options: Options): Environment {
  const { hops, seed, topk } = options;
  if (options.corpus !== undefined)
    throw new EnvError(
      "search: a corpus needs questions about it: set data (or SEARCHQA_DATA) to the folder with the question files.",
    );
  const world = makeWorld(options);
  const { lists, book } = worldQuestions(world, hops, seed);
  const corpus = corpusOf(options, world);
  return environment(lists, book, openRetriever({ ...options, corpus }), topk, nextAction);
}

function openData(options: Options, data: string): Environment {
  const usual = searchOptions.parse({});
  for (const name of MADE_UP_ONLY)
    if (options[name] !== usual[name])
      throw new EnvError(
        `search: ${name} is about the made-up world, and ${data} has questions of its own: leave one of them out.`,
      );
  const { train, evaluation } = findQuestionFiles(data);
  const questions = new Map<string, Question>();
  const listOf = (split: string, files: ReadonlyMap<string, string>) => (): readonly Task[] =>
    takeTurns(
      [...files].map(([set, path]) =>
        readQuestions(path).map((question): Task => {
          const id = `${split === set ? set : `${split}/${set}`}/${question.id}`;
          questions.set(id, question);
          return { id, split, type: set };
        }),
      ),
    );
  const lists = taskLists("search", {
    ...(train.size > 0 && { train: listOf("train", train) }),
    ...(evaluation.size > 0 && { test: listOf("test", evaluation) }),
    ...Object.fromEntries([...evaluation].map((one) => [one[0], listOf(one[0], new Map([one]))])),
  });
  const book: QuestionBook = {
    question: (task) => questions.get(task.id) ?? questions.get(lists.task(task.id).id)!,
  };
  const isServer = /^https?:/i.test(options.retriever);
  const corpus = options.corpus ?? (isServer ? undefined : findCorpus(data));
  return environment(lists, book, openRetriever({ ...options, corpus }), options.topk);
}

/**
 * The first of each list, then the second of each, so that the first tasks cover all data sets
 * equally.
 */
function takeTurns<T>(lists: readonly (readonly T[])[]): readonly T[] {
  const longest = Math.max(...lists.map((list) => list.length));
  return Array.from({ length: longest }, (_, at) =>
    lists.flatMap((list) => list.slice(at, at + 1)),
  ).flat();
}

function environment(
  lists: Pick<Environment, "splits" | "tasks" | "task">,
  book: QuestionBook,
  retriever: Retriever,
  topk: number,
  expert?: (env: Env) => string,
): Environment {
  return {
    name: "search",
    ...lists,
    stepLimit: TURNS,
    maxReturn: RIGHT_REWARD,
    whiteSpace: "collapse",
    prompt: searchPrompt,
    create: retriever.local
      ? () => createSearchEnv({ book, retriever, topk })
      : () => createWaitingSearchEnv({ book, retriever, topk }),
    // The expert needs the state, which an asynchronous environment does not expose.
    ...(expert !== undefined && retriever.local && { expert }),
  };
}

/** The expert: looks up the passages on the trail that it has not read yet, then answers. */
function nextAction(env: Env): string {
  if (!("state" in env))
    throw new EnvError("The search expert plays search environments only, unwrapped.");
  const { question, seen } = (env as SearchEnv).state;
  const missing = question.trail!.find(({ passage }) => !seen.has(passage));
  return missing === undefined
    ? writeAction({ kind: "answer", text: question.answers[0]! })
    : writeAction({ kind: "search", text: missing.query });
}

const HOW_TO_GET = `Question files: one {"id", "question", "golden_answers"} per line, named SET-train, SET-test or SET-dev with .jsonl or .jsonl.gz, SET one of ${dataSets.join(", ")} (RUC-NLPIR/FlashRAG_datasets on Hugging Face has them in this format). The corpus: one {"id", "contents"} per line, named corpus.jsonl or SOMETHING-corpus.jsonl (the paper searches Wikipedia of 2018: wiki-18 in the same collection). Put them into one folder and point SEARCHQA_DATA or the option data at it.`;

function describe(options: Options): readonly string[] {
  const data = dataOf(options);
  if (data === undefined)
    return [
      `a made-up world of ${options.size} things (seed ${options.seed}); nothing to download`,
      HOW_TO_GET,
    ];
  try {
    const { train, evaluation } = findQuestionFiles(data);
    const missing = dataSets.filter((set) => !evaluation.has(set));
    return [
      `training: ${[...train.values()].join(", ") || "nothing (nq-train, hotpotqa-train)"}`,
      `evaluation: ${[...evaluation.values()].join(", ")}${missing.length > 0 ? `; missing: ${missing.join(", ")}` : ""}`,
      `corpus: ${options.corpus ?? findCorpus(data) ?? "none"}; retriever: ${options.retriever}`,
      HOW_TO_GET,
    ];
  } catch (error) {
    if (error instanceof EnvError) return [error.message, HOW_TO_GET];
    throw error;
  }
}

/**
 * Quality and speed of the search in search QA: how often the answer to 2WikiMultihopQA's questions
 * is in the top passages (BM25, the question as the query), and the environment's speed in the
 * made-up world.
 *
 *   npm run bench -- searchqa [--data ../shared/data/searchqa] [--set 2wiki] [--encoder FOLDER]
 *
 * The available corpus covers only part of the questions, so recall is given over all questions,
 * over those whose answer is somewhere in the corpus, and over those of them that also name the
 * title of a passage. Yes/no questions are left out: their answer is everywhere.
 */
import { existsSync } from "node:fs";
import { cpus } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import type { Env } from "@pawl/core/envs/env.js";
import { createRandom } from "@pawl/core/random.js";
import { openCorpus } from "@pawl/worlds/retrieval/corpus.js";
import type { Retriever } from "@pawl/worlds/retrieval/retriever.js";
import { openRetriever } from "@pawl/worlds/retrieval/retriever-open.js";
import { findCorpus, findQuestionFiles, readQuestions } from "@pawl/worlds/search/question-file.js";
import { search } from "@pawl/worlds/search/search.js";
import { normaliseAnswer } from "@pawl/worlds/search/search-env.js";

const depths = [1, 5, 10] as const;

/** A question of a file, ready to be searched for. */
interface Wanted {
  readonly query: string;
  /** The correct answers, normalised, padded with a blank on either side. */
  readonly answers: readonly string[];
  /**
   * Whether any passage of the corpus contains an answer, and whether the question names one by its
   * title.
   */
  readonly inCorpus: boolean;
  readonly namesPassage: boolean;
}

const padded = (text: string): string => ` ${normaliseAnswer(text)} `;

function wantedQuestions(questionFile: string, corpusFile: string): readonly Wanted[] {
  const corpus = openCorpus(corpusFile);
  const passages = Array.from({ length: corpus.count }, (_, at) => corpus.passage(at).contents);
  const everything = passages.map(padded).join("\n");
  // One-word titles occur in many questions.
  const titles = new Set(
    passages.map((text) => normaliseAnswer(text.split("\n", 1)[0]!.replace(/\(.*?\)/g, ""))),
  );
  const namesPassage = (question: string): boolean => {
    const words = normaliseAnswer(question.replace(/'s\b/g, "")).split(" ");
    return words.some((_, from) =>
      words
        .slice(from)
        .some((_, size) => size > 0 && titles.has(words.slice(from, from + size + 1).join(" "))),
    );
  };
  return readQuestions(questionFile)
    .map(({ text, answers }) => ({ query: text, answers: answers.map(padded) }))
    .filter(({ answers }) => !answers.some((one) => [" yes ", " no ", "  "].includes(one)))
    .map((one) => ({
      ...one,
      inCorpus: one.answers.some((text) => everything.includes(text)),
      namesPassage: namesPassage(one.query),
    }));
}

/**
 * For every question the rank of the first passage with an answer, and the median time of a search.
 */
async function ranks(retriever: Retriever, wanted: readonly Wanted[]) {
  const times: number[] = [];
  const rank = new Map<Wanted, number>();
  for (const one of wanted) {
    const start = performance.now();
    const hits = await retriever.search(one.query, depths.at(-1)!);
    times.push(performance.now() - start);
    const at = hits.findIndex(({ passage }) => {
      const text = padded(passage.contents);
      return one.answers.some((answer) => text.includes(answer));
    });
    rank.set(one, at < 0 ? Number.POSITIVE_INFINITY : at);
  }
  const median = times.sort((a, b) => a - b)[times.length >> 1] ?? Number.NaN;
  return { rank, ms: Math.round(median * 1000) / 1000 };
}

/** The share of some questions with an answer among the top 1, 5 and 10 passages. */
function recall(rank: ReadonlyMap<Wanted, number>, questions: readonly Wanted[]) {
  const share = (depth: number): number => {
    const found = questions.filter((one) => rank.get(one)! < depth).length;
    return Math.round((1e4 * found) / questions.length) / 1e4;
  };
  return { questions: questions.length, at_1: share(1), at_5: share(5), at_10: share(10) };
}

/** Steps per second of random play in the made-up world, listing the actions at every step. */
function stepsPerSecond(seconds: number): number {
  const environment = search.open(search.options.parse({ data: "made-up" }));
  const env = environment.create() as Env;
  const tasks = environment.tasks("train");
  const random = createRandom(1);
  const start = performance.now();
  let steps = 0;
  while (performance.now() - start < 1000 * seconds) {
    env.reset(random.pick(tasks));
    for (let turn = 0; turn < environment.stepLimit; turn++) {
      steps++;
      if (env.step(random.pick(env.admissibleActions!())).done) break;
    }
  }
  return Math.round(steps / ((performance.now() - start) / 1000));
}

/** Runs everything. */
export async function main(args: string[]) {
  const { values } = parseArgs({
    args,
    options: {
      data: { type: "string", default: process.env.SEARCHQA_DATA ?? "../shared/data/searchqa" },
      set: { type: "string", default: "2wiki" },
      encoder: { type: "string" },
      seconds: { type: "string", default: "3" },
    },
  });
  console.log(`${cpus().length} × ${cpus()[0]?.model}, Node ${process.version}`);
  const steps_per_s = stepsPerSecond(Number(values.seconds));
  console.log(`made-up world: ${steps_per_s} steps/s`);
  if (!existsSync(values.data)) {
    console.log(`no ${values.data}: recall is not measured`);
    return { steps_per_s };
  }
  const questions = findQuestionFiles(values.data).evaluation.get(values.set);
  if (questions === undefined) throw new Error(`${values.data} has no questions of ${values.set}`);
  const own = join(values.data, `${values.set}-corpus.jsonl.gz`);
  const corpus = existsSync(own) ? own : findCorpus(values.data);
  if (corpus === undefined) throw new Error(`${values.data} has no corpus`);
  const start = performance.now();
  const retriever = openRetriever({ retriever: "bm25", corpus });
  const index_s = Math.round(performance.now() - start) / 1000;
  const all = wantedQuestions(questions, corpus);
  const inCorpus = all.filter((one) => one.inCorpus);
  const named = inCorpus.filter((one) => one.namesPassage);
  const { rank, ms } = await ranks(retriever, all);
  const result = {
    steps_per_s,
    index_s,
    search_ms: ms,
    recall: recall(rank, all),
    recall_in_corpus: recall(rank, inCorpus),
    recall_named: recall(rank, named),
  };
  if (values.encoder === undefined) return result;
  const { encoder } = values;
  const dense = await ranks(openRetriever({ retriever: "dense", corpus, encoder }), named);
  return { ...result, dense_search_ms: dense.ms, dense_recall_named: recall(dense.rank, named) };
}

/**
 * How well and how fast the search of search QA works: on 2WikiMultihopQA's questions, in how many cases
 * the answer stands in the best passages (BM25, the question as the query), and the environment's speed
 * in the made-up world.
 *
 *   npm run bench -- searchqa [--data ../shared/data/searchqa] [--set 2wiki] [--encoder FOLDER]
 *
 * The corpus may be a part of what the questions are about, so recall is also given over the questions
 * whose answer stands anywhere in it. Yes/no questions are left out: their answer stands everywhere.
 */
import { existsSync } from "node:fs";
import { cpus } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import type { Env } from "../src/envs/env.js";
import { normaliseAnswer } from "../src/envs/search/answer.js";
import { findCorpus, findQuestionFiles, readQuestions } from "../src/envs/search/question-file.js";
import { search } from "../src/envs/search/search.js";
import { createRandom } from "../src/random.js";
import { openCorpus } from "../src/search/corpus.js";
import type { Retriever } from "../src/search/retriever.js";
import { openRetriever } from "../src/search/retriever-open.js";

const depths = [1, 5, 10] as const;

/** A question of a file, ready to be looked for. */
interface Wanted {
  readonly query: string;
  /** The right answers, normalised, with a blank on either side. */
  readonly answers: readonly string[];
  /** Whether any passage of the corpus has an answer. */
  readonly inCorpus: boolean;
}

const padded = (text: string): string => ` ${normaliseAnswer(text)} `;

function wantedQuestions(questionFile: string, corpusFile: string): readonly Wanted[] {
  const corpus = openCorpus(corpusFile);
  const texts = Array.from({ length: corpus.count }, (_, at) =>
    padded(corpus.passage(at).contents),
  );
  const everything = texts.join("\n");
  return readQuestions(questionFile)
    .map(({ text, answers }) => ({ query: text, answers: answers.map(padded) }))
    .filter(({ answers }) => !answers.some((one) => [" yes ", " no ", "  "].includes(one)))
    .map((one) => ({ ...one, inCorpus: one.answers.some((text) => everything.includes(text)) }));
}

/** Share of the questions with an answer among the best 1, 5 and 10 passages, and the median time. */
async function recall(retriever: Retriever, wanted: readonly Wanted[]) {
  const found = depths.map(() => 0);
  const times: number[] = [];
  for (const { query, answers } of wanted) {
    const start = performance.now();
    const hits = await retriever.search(query, depths.at(-1)!);
    times.push(performance.now() - start);
    const rank = hits.findIndex(({ passage }) => {
      const text = padded(passage.contents);
      return answers.some((one) => text.includes(one));
    });
    for (const [i, depth] of depths.entries()) if (rank >= 0 && rank < depth) found[i]!++;
  }
  const share = (i: number): number => Math.round((1e4 * found[i]!) / wanted.length) / 1e4;
  const median = times.sort((a, b) => a - b)[times.length >> 1] ?? Number.NaN;
  return { at1: share(0), at5: share(1), at10: share(2), ms: Math.round(median * 1000) / 1000 };
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

/** Runs all of it. */
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
  const present = all.filter((one) => one.inCorpus);
  const whole = await recall(retriever, all);
  const part = await recall(retriever, present);
  const dense =
    values.encoder === undefined
      ? undefined
      : await recall(
          openRetriever({ retriever: "dense", corpus, encoder: values.encoder }),
          present,
        );
  return {
    steps_per_s,
    index_s,
    search_ms: whole.ms,
    questions: all.length,
    recall_at_1: whole.at1,
    recall_at_5: whole.at5,
    recall_at_10: whole.at10,
    answer_in_corpus: present.length,
    recall_at_1_in_corpus: part.at1,
    recall_at_5_in_corpus: part.at5,
    recall_at_10_in_corpus: part.at10,
    ...(dense !== undefined && {
      dense_search_ms: dense.ms,
      dense_recall_at_1_in_corpus: dense.at1,
      dense_recall_at_5_in_corpus: dense.at5,
      dense_recall_at_10_in_corpus: dense.at10,
    }),
  };
}

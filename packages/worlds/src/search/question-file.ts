/**
 * Question files in the common format, `{id, question, golden_answers}` on every line, for the
 * seven data sets that the paper evaluates on.
 */
import { existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { EnvError, type Task } from "@pawl/core/envs/env.js";
import {
  badLine,
  type Line,
  type LineFile,
  openLines,
  type Passage,
  parseLine,
} from "../retrieval/corpus.js";

/** The data sets, in the order of the paper's table 2. */
export const dataSets = [
  "nq",
  "triviaqa",
  "popqa",
  "hotpotqa",
  "2wiki",
  "musique",
  "bamboogle",
] as const;

/** The data sets to train on. */
const trainingSets: readonly string[] = ["nq", "hotpotqa"];

const extensions = [".jsonl", ".jsonl.gz"];
/** Some data sets publish no answers for their test questions: there the paper uses `dev`. */
const evaluationParts = ["test", "dev"];

/** A question with its name in the file. */
export interface FileQuestion extends Question {
  readonly id: string;
}

/** The files that a folder has. */
export interface QuestionFiles {
  /** Training files, by data set. */
  readonly train: ReadonlyMap<string, string>;
  /** Evaluation files, by data set, in the order of the paper's table. */
  readonly evaluation: ReadonlyMap<string, string>;
}

/** Looks for the files of the data sets; throws an `EnvError` if there are none. */
export function findQuestionFiles(folder: string): QuestionFiles {
  if (!existsSync(folder) || !statSync(folder).isDirectory())
    throw new EnvError(
      `There is no folder ${folder}. Set the option data (or SEARCHQA_DATA) to the folder with the question files, or leave it out for the made-up world.`,
    );
  const find = (set: string, parts: readonly string[]): [string, string][] => {
    const names = parts.flatMap((part) => extensions.map((ending) => `${set}-${part}${ending}`));
    const path = names.map((name) => join(folder, name)).find((one) => existsSync(one));
    return path === undefined ? [] : [[set, path]];
  };
  const train = new Map(trainingSets.flatMap((set) => find(set, ["train"])));
  const evaluation = new Map(dataSets.flatMap((set) => find(set, evaluationParts)));
  if (train.size + evaluation.size === 0)
    throw new EnvError(
      `${folder} has no question files: expected names like nq-train.jsonl, nq-test.jsonl.gz or musique-dev.jsonl for ${dataSets.join(", ")}.`,
    );
  return { train, evaluation };
}

/** The corpus in a data folder; undefined if there is none, an `EnvError` if there are several. */
export function findCorpus(folder: string): string | undefined {
  const names = readdirSync(folder)
    .filter((name) => /(?:^|-)corpus\.jsonl(?:\.gz)?$/.test(name))
    .sort();
  if (names.length > 1)
    throw new EnvError(
      `${folder} has several corpora (${names.join(", ")}): choose one with the option corpus.`,
    );
  return names[0] === undefined ? undefined : join(folder, names[0]);
}

/** Reads a question file; a line that is not a question is an error that names it. */
export function readQuestions(path: string): readonly FileQuestion[] {
  const file = openLines(path);
  const questions: FileQuestion[] = [];
  const lineOf = new Map<string, number>();
  file.each((line) => {
    const { number } = line;
    const question = toQuestion(file, line);
    const earlier = lineOf.get(question.id);
    if (earlier !== undefined)
      throw badLine(file, number, `has the id of line ${earlier}, ${JSON.stringify(question.id)}`);
    lineOf.set(question.id, number);
    questions.push(question);
  });
  if (questions.length === 0)
    throw new EnvError(
      `${path} holds no questions: expected one {"id", "question", "golden_answers"} on every line.`,
    );
  return questions;
}

function toQuestion(file: LineFile, line: Line): FileQuestion {
  const { id, question, golden_answers: answers } = parseLine(file, line);
  if (typeof id !== "string" && typeof id !== "number")
    throw badLine(
      file,
      line.number,
      `has no id: expected a string or a number, got ${JSON.stringify(id)}`,
    );
  if (typeof question !== "string" || question.trim() === "")
    throw badLine(file, line.number, "has no question: expected a text that is not empty");
  const isList = Array.isArray(answers) && answers.length > 0;
  if (!isList || !answers.every((one) => typeof one === "string"))
    throw badLine(file, line.number, "has no golden_answers: expected a list of at least one text");
  return { id: String(id), text: question.trim(), answers: answers as string[] };
}

/** A passage that must be read, and the query that finds it. */
interface Waypoint {
  readonly passage: string;
  readonly query: string;
}

/** A question to be answered. */
export interface Question {
  readonly text: string;
  /** Any of these is correct. */
  readonly answers: readonly string[];
  /** The passages that lead to the answer, in order, if known. */
  readonly trail?: readonly Waypoint[];
}

/** The questions of an opened environment. */
export interface QuestionBook {
  /** The question of a task; an unknown task is an `EnvError`. */
  question(task: Task): Question;
  /** Actions to list as admissible after these passages were found, if actions can be listed. */
  suggestions?(question: Question, found: readonly Passage[]): readonly string[];
}

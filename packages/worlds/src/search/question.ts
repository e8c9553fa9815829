/** A question with its correct answers, and sources of questions. */

import type { Task } from "@pawl/core/envs/env.js";
import type { Passage } from "../retrieval/corpus.js";

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

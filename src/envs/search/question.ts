/** A question with its right answers, and where questions come from. */
import type { Passage } from "../../search/corpus.js";
import type { Task } from "../env.js";

/** A passage that has to be read, and the query that finds it. */
export interface Waypoint {
  readonly passage: string;
  readonly query: string;
}

/** A question to be answered. */
export interface Question {
  readonly text: string;
  /** Any of these is right. */
  readonly answers: readonly string[];
  /** What leads to the answer, in order, where that is known. */
  readonly trail?: readonly Waypoint[];
}

/** The questions of an opened environment. */
export interface QuestionBook {
  /** The question of a task; an unknown task is an `EnvError`. */
  question(task: Task): Question;
  /** Actions to list as admissible after these passages were found, where anything can be listed. */
  suggestions?(question: Question, found: readonly Passage[]): readonly string[];
}

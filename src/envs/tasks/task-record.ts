/** Tasks as records: from a function, or from a file with one JSON object per line. */
import { fileURLToPath } from "node:url";
import { readRegularText } from "../../regular-file.js";
import { EnvError, type Task } from "../env.js";

/** A task with everything that its line says; the reward function reads the rest. */
export interface TaskRecord extends Task {
  /** What to do, in words. */
  readonly goal: string;
  /** What is seen first. */
  readonly observation: string;
  readonly [field: string]: unknown;
}

/** A task as it is given: a goal, and whatever else its reward needs. */
export interface GivenTask {
  /** Unique within its split (default: its number). */
  readonly id?: string | number;
  readonly goal: string;
  readonly observation?: string;
  readonly type?: string;
  readonly [field: string]: unknown;
}

/** Where the tasks of a split come from: a function, or a .jsonl file. */
export type TaskSource = (() => readonly GivenTask[]) | string | URL;

/** What an episode shows first if the task does not say. */
export const NOTHING_YET = "Nothing has happened yet.";

/** The tasks of a split; a bad one is an `EnvError` that names its line. */
export function readTasks(split: string, source: TaskSource): readonly TaskRecord[] {
  const { given, place } = typeof source === "function" ? called(source, split) : read(source);
  const ids = new Set<string>();
  return given.map((task, index) => {
    const here = `${place} ${index + 1}`;
    if (typeof task !== "object" || task === null || Array.isArray(task))
      throw new EnvError(`${here}: expected an object with a goal, got ${JSON.stringify(task)}`);
    const { id = index, goal, observation = NOTHING_YET, type = "task", ...rest } = task;
    for (const [name, value] of Object.entries({ goal, observation, type }))
      if (typeof value !== "string" || value.trim() === "")
        throw new EnvError(`${here}: ${name}: expected text, got ${JSON.stringify(value)}`);
    if (!["string", "number"].includes(typeof id))
      throw new EnvError(`${here}: id: expected text or a number, got ${JSON.stringify(id)}`);
    const full = `${split}/${id}`;
    if (ids.has(full)) throw new EnvError(`${here}: the id ${JSON.stringify(id)} occurs twice`);
    ids.add(full);
    return { ...rest, id: full, split, type, goal, observation };
  });
}

interface TaskBatch {
  readonly given: readonly GivenTask[];
  /** What to call a task, before its number. */
  readonly place: string;
}

function called(source: () => readonly GivenTask[], split: string): TaskBatch {
  const given: unknown = source();
  if (!Array.isArray(given))
    throw new EnvError(`the tasks of ${split}: expected a list, got a ${typeof given}`);
  return { given: given as readonly GivenTask[], place: `tasks of ${split}, number` };
}

function read(source: string | URL): TaskBatch {
  const path = source instanceof URL ? fileURLToPath(source) : source;
  let text: string;
  try {
    text = readRegularText(path);
  } catch (error) {
    throw new EnvError(`could not read the tasks: ${(error as Error).message}`, { cause: error });
  }
  const lines = text.replace(/^\uFEFF/, "").split("\n");
  while (lines.at(-1)?.trim() === "") lines.pop();
  const given = lines.map((line, index) => {
    try {
      return JSON.parse(line) as GivenTask;
    } catch (error) {
      throw new EnvError(`${path}, line ${index + 1}: ${(error as Error).message}`, {
        cause: error,
      });
    }
  });
  return { given, place: `${path}, line` };
}

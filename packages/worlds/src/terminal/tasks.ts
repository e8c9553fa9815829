/**
 * Tasks made from a seed: the same seed, split, number and difficulty make the same task. No family
 * is in two splits.
 */
import type { Task } from "@pawl/core/envs/env.js";
import { createRandom, mixSeed } from "@pawl/core/random.js";
import { scoringScript, type TaskSource, type TerminalTask } from "./task.js";
import { type Family, stepFamilies } from "./tasks-steps.js";

/** How many tasks a split has. */
const SIZES: Readonly<Record<string, number>> = { train: 4000, valid: 200, test: 400 };
/** Where a task's shell begins, as in most of Harbor's images. */
const FOLDER = "/app";

/** The made-up tasks: one family after the other, each with words of its own. */
export function madeTasks(seed: number, difficulty: number): TaskSource {
  const splits = stepFamilies();
  const list = (split: string, families: readonly string[]) => (): readonly Task[] =>
    Array.from({ length: SIZES[split]! }, (_, index) => ({
      id: `${split}/${index}`,
      split,
      type: families[index % families.length]!,
    }));
  return {
    lists: Object.fromEntries(
      Object.entries(splits).map(([split, families]) => [
        split,
        list(split, Object.keys(families)),
      ]),
    ),
    load: (task) => makeTask(task, splits[task.split]![task.type]!, seed, difficulty),
  };
}

function makeTask(task: Task, family: Family, seed: number, difficulty: number): TerminalTask {
  const { id, type } = task;
  const made = family(createRandom(mixSeed("terminal", seed, id, type, difficulty)), difficulty);
  return {
    id,
    family: type,
    difficulty,
    instruction: made.instruction,
    files: Object.entries(made.before).map(([path, text]) => {
      const mode = made.modes?.[path];
      return { path: `${FOLDER}/${path}`, text, ...(mode !== undefined && { mode }) };
    }),
    folder: FOLDER,
    test: scoringScript(made.before, made.after, made.conditions),
    solution: made.solution,
  };
}

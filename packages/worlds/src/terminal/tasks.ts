/**
 * Tasks made from a seed: the same seed, split, number and difficulty make the same task. No family
 * is in two splits.
 */
import type { Task } from "@pawl/core/envs/env.js";
import { createRandom, mixSeed } from "@pawl/core/random.js";
import { z } from "zod";
import { type Family, type SplitFamilies, scoringScript, type TaskSource } from "./task.js";
import { data, find, text } from "./tasks-files.js";
import { script } from "./tasks-script.js";
import { chains } from "./tasks-steps.js";
import { config, history, logs } from "./tasks-upkeep.js";

const KINDS = { chain: chains, find, text, data, script, config, logs, history } as const;

/** Kinds of tasks, and what they are about. */
type TaskKind = keyof typeof KINDS;
export const taskKinds = Object.keys(KINDS) as [TaskKind, ...TaskKind[]];

/** The settings of made-up tasks. */
export const madeTaskOptions = {
  seed: z.int().min(0).max(0xffffffff).default(0).describe("random seed of the tasks"),
  difficulty: z
    .int()
    .min(1)
    .max(3)
    .default(1)
    .describe("from 1, a few files and short commands, to 3"),
  kinds: z
    .array(z.enum(taskKinds))
    .min(1)
    .default([...taskKinds])
    .describe(
      "what tasks are about; chain: two or three small commands, one after the other (default: all)",
    ),
};

/** How many tasks a split has. */
const SIZES: Readonly<Record<keyof SplitFamilies, number>> = {
  train: 10_000,
  valid: 400,
  test: 1000,
};
/** Where a task's shell begins, as in most of Harbor's images. */
const FOLDER = "/app";

interface MadeTasksOptions {
  readonly seed: number;
  readonly difficulty: number;
  readonly kinds: readonly TaskKind[];
}

/** The made-up tasks: of each kind in turn, one family after the other. */
export function madeTasks({ seed, difficulty, kinds }: MadeTasksOptions): TaskSource {
  const families = (split: keyof SplitFamilies) =>
    kinds.map((kind) =>
      Object.entries(KINDS[kind][split]).map(
        ([name, make]) => [kind === "chain" ? name : `${kind}/${name}`, make] as const,
      ),
    );
  const all = new Map<string, Family>();
  const list = (split: keyof SplitFamilies) => {
    const byKind = families(split);
    for (const [name, make] of byKind.flat()) all.set(name, make);
    return (): readonly Task[] =>
      Array.from({ length: SIZES[split] }, (_, index) => {
        const ofKind = byKind[index % byKind.length]!;
        const [type] = ofKind[Math.floor(index / byKind.length) % ofKind.length]!;
        return { id: `${split}/${index}`, split, type };
      });
  };
  return {
    lists: { train: list("train"), valid: list("valid"), test: list("test") },
    load({ id, type }) {
      const random = createRandom(mixSeed("terminal", seed, id, type, difficulty));
      const made = all.get(type)!(random, difficulty);
      const files = Object.entries(made.before).map(([path, content]) => [
        `${FOLDER}/${path}`,
        content,
      ]);
      return {
        id,
        family: type,
        difficulty,
        instruction: made.instruction,
        files: Object.fromEntries(files),
        folder: FOLDER,
        test: scoringScript(made),
        solution: made.solution,
      };
    },
  };
}

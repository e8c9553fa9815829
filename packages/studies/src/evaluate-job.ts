/** The final evaluation of a job's model, a process per split and round. */
import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { readRegularText } from "@pawl/core/files/regular-file.js";
import { writeSmallFile } from "@pawl/core/runs/small-file.js";
import type { TrainConfig } from "@pawl/training/config.js";
import { type ChildOptions, runChild } from "./child.js";
import {
  type EvaluationSize,
  evaluationsFile,
  type SplitResult,
  type TaskResult,
} from "./result-file.js";

/** What to evaluate. */
export interface JobEvaluation {
  readonly folder: string;
  /** A run or a model folder. */
  readonly model: string;
  readonly config: TrainConfig;
  readonly seed: number;
  readonly size: EvaluationSize;
}

/** What `pawl eval --json` prints, as far as it is used here. */
interface Printed extends TaskResult {
  readonly byType?: Readonly<Record<string, TaskResult>>;
}

/** An evaluation that ended, and what it was of. */
interface Finished {
  readonly settings: unknown;
  readonly result: SplitResult;
}

/**
 * Evaluates on every split. The same tasks and seeds for every arm of a seed, so that differences
 * between arms are paired. What an interrupted call has evaluated is not evaluated again.
 */
export async function evaluateJob(
  { folder, model, config, seed, size }: JobEvaluation,
  options: Omit<ChildOptions, "onLine"> & { readonly onSplit: (split: string) => void },
): Promise<Readonly<Record<string, SplitResult>>> {
  const { evaluation, env, prompt, maxTokens, stepLimit, engine } = config;
  const { tasks, rounds } = size;
  const kept = evaluationsFile(folder);
  const finished: Finished[] = existsSync(kept)
    ? (JSON.parse(readRegularText(kept)) as Finished[])
    : [];
  const results: Record<string, SplitResult> = {};
  for (const split of evaluation.splits) {
    const all: SplitResult[] = [];
    for (let round = 0; round < rounds; round++) {
      const { temperature, shuffle } = evaluation;
      const what = {
        ...{ split, tasks, temperature, seed: seed + 1_000_003 * round },
        // Evaluations of the first tasks were recorded before there were others.
        ...(shuffle && { shuffle }),
      };
      const before = finished.find(({ settings }) => isDeepStrictEqual(settings, what));
      if (before === undefined) {
        options.onSplit(split);
        const out = join(folder, "evaluation");
        rmSync(out, { recursive: true, force: true });
        const acting = { env, prompt, maxTokens, stepLimit, engine };
        const path = join(folder, "eval.json");
        const content = { ...acting, ...what, shuffle, checkpoint: model, json: true, out };
        writeSmallFile(path, `${JSON.stringify(content)}\n`);
        const printed = await runChild(["eval", "--config", path], options);
        const result = read(JSON.parse(printed) as Printed);
        rmSync(out, { recursive: true, force: true });
        finished.push({ settings: what, result });
        writeSmallFile(kept, `${JSON.stringify(finished)}\n`);
        all.push(result);
      } else all.push(before.result);
    }
    results[split] = together(all);
  }
  return results;
}

function read({ byType, ...all }: Printed): SplitResult {
  const types = Object.entries(byType ?? {}).map(([type, one]) => [type, numbersOf(one)] as const);
  return { ...numbersOf(all), types: Object.fromEntries(types) };
}

/** JSON has no numbers for what was not measured. */
function numbersOf(one: TaskResult): TaskResult {
  const { success = 0, episodes, broken, invalid, steps, score, return: mean } = one;
  return {
    success,
    episodes,
    broken,
    ...(invalid !== undefined && { invalid }),
    ...(steps !== undefined && { steps }),
    ...(score !== undefined && { score }),
    ...(mean !== undefined && { return: mean }),
  };
}

/** Merges several rounds; broken episodes are excluded from all means. */
function together(rounds: readonly SplitResult[]): SplitResult {
  const names = [...new Set(rounds.flatMap(({ types = {} }) => Object.keys(types)))].sort();
  return {
    ...merged(rounds),
    types: Object.fromEntries(
      names.map((name) => [name, merged(rounds.flatMap(({ types }) => types?.[name] ?? []))]),
    ),
  };
}

function merged(parts: readonly TaskResult[]): TaskResult {
  const sum = (of: (part: TaskResult) => number) => parts.reduce((all, one) => all + of(one), 0);
  const episodes = sum((part) => part.episodes);
  const mean = (key: "success" | "invalid" | "steps" | "score" | "return") => {
    const having = parts.filter((part) => part[key] !== undefined && part.episodes > 0);
    const weight = having.reduce((all, part) => all + part.episodes, 0);
    const total = having.reduce((all, part) => all + part[key]! * part.episodes, 0);
    return weight === 0 ? {} : { [key]: total / weight };
  };
  return {
    success: 0,
    ...mean("success"),
    episodes,
    broken: sum((part) => part.broken),
    ...mean("invalid"),
    ...mean("steps"),
    ...mean("score"),
    ...mean("return"),
  };
}

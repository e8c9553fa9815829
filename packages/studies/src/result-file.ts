/** The result of one run of a comparison, as `result.json` holds it. */
import { existsSync, readdirSync, rmSync } from "node:fs";
import { cpus } from "node:os";
import { join } from "node:path";
import { readRegularText } from "@pawl/core/files/regular-file.js";
import { writeSmallFile } from "@pawl/core/runs/small-file.js";
import type { Algorithm } from "./arms.js";

/** A run's folder, and what its path says. */
export interface RunFolder {
  /** `SETTING/ARM/seed-N`. */
  readonly key: string;
  readonly setting: string;
  readonly algorithm: Algorithm;
  readonly arm: string;
  readonly folder: string;
}

/** The runs in a comparison's folder, finished or not. */
export function runsIn(out: string): readonly RunFolder[] {
  return subfolders(out).flatMap((setting) =>
    subfolders(join(out, setting)).flatMap((arm) =>
      subfolders(join(out, setting, arm))
        .filter((name) => name.startsWith("seed-"))
        .map((name) => ({
          key: join(setting, arm, name),
          setting,
          algorithm: algorithmOf(arm),
          arm,
          folder: join(out, setting, arm, name),
        })),
    ),
  );
}

/** The algorithm of an arm by its name. */
export const algorithmOf = (arm: string): Algorithm => arm.split("+")[0] as Algorithm;

/** The folders of starts in a comparison's folder. */
export function startFolders(out: string): readonly string[] {
  return subfolders(out).flatMap((setting) =>
    subfolders(join(out, setting))
      .filter((name) => /^start(-|$)/.test(name))
      .map((name) => join(out, setting, name)),
  );
}

function subfolders(folder: string): readonly string[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => entry.name)
    .sort();
}

/** How a model did on some tasks. */
export interface TaskResult {
  readonly success: number;
  readonly episodes: number;
  readonly broken: number;
  readonly invalid?: number;
  readonly steps?: number;
  /** A graded result in [0, 1], where the environment has one. */
  readonly score?: number;
  readonly return?: number;
}

/** How a model did on one split. */
export interface SplitResult extends TaskResult {
  /** The same by task type; results before 2026-11-16 have none. */
  readonly types?: Readonly<Record<string, TaskResult>>;
}

/** The result of a job. A start has one too, without algorithm, arm and seed. */
export interface JobResult {
  readonly setting: string;
  /** The start's name, if it is not the setting's own warm start. */
  readonly start?: string;
  /** Of a start: the digest of its weights; absent in older results. */
  readonly weights?: string;
  readonly algorithm?: Algorithm;
  readonly arm?: string;
  readonly seed?: number;
  readonly splits: Readonly<Record<string, SplitResult>>;
  /** What was asked of the evaluation; absent in older results. */
  readonly evaluation?: EvaluationSize;
  /** Seconds for training and evaluation in the call that finished it. */
  readonly seconds: number;
  /** The same by phase; absent in older results. */
  readonly phases?: Readonly<Record<string, number>>;
  readonly finishedAt: string;
  readonly machine: string;
}

/** How much is evaluated. */
export interface EvaluationSize {
  readonly tasks: number;
  readonly rounds: number;
}

const RESULT = "result.json";

/** The folder of a job's training run. */
export const trainingFolder = (folder: string): string => join(folder, "run");

/** Finished parts of an evaluation that has not ended. */
export const evaluationsFile = (folder: string): string => join(folder, "evaluations.json");

/** The result of a finished job, or undefined. */
export function readResult(folder: string): JobResult | undefined {
  const path = join(folder, RESULT);
  return existsSync(path) ? (JSON.parse(readRegularText(path)) as JobResult) : undefined;
}

/** Writes the result, which marks the job as finished. */
export function writeResult(
  folder: string,
  what: Omit<JobResult, "seconds" | "finishedAt" | "machine"> & Required<Pick<JobResult, "phases">>,
): JobResult {
  const result: JobResult = {
    ...what,
    seconds: Object.values(what.phases).reduce((sum, seconds) => sum + seconds, 0),
    finishedAt: new Date().toISOString(),
    machine: `${cpus().length} × ${cpus()[0]?.model ?? "unknown"}, Node ${process.version}`,
  };
  writeSmallFile(join(folder, RESULT), `${JSON.stringify(result, undefined, 2)}\n`);
  rmSync(evaluationsFile(folder), { force: true });
  return result;
}

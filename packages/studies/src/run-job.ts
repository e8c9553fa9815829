/**
 * One run of a comparison, in stages that are each done once: train, evaluate, write the result.
 *
 *   job.json      what the run is; another comparison in the same folder is refused
 *   run/          the training run
 *   result.json   the final evaluation; if it exists, the job is done
 *
 * Called again after an interruption or a kill, it resumes where it stopped.
 */
import { existsSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { latestCheckpoint } from "@pawl/core/runs/checkpoints.js";
import { hasManifest } from "@pawl/core/runs/manifest.js";
import { openRun } from "@pawl/core/runs/run-folder.js";
import { findLock, requireFree } from "@pawl/core/runs/run-lock.js";
import { writeSmallFile } from "@pawl/core/runs/small-file.js";
import type { TrainConfig } from "@pawl/training/config.js";
import { isRemote } from "@pawl/training/engines.js";
import { type ChildOptions, runChild } from "./child.js";
import { type Claim, claim } from "./claim.js";
import { evaluateJob, type JobEvaluation } from "./evaluate-job.js";
import type { Job } from "./matrix.js";
import {
  type EvaluationSize,
  type JobResult,
  readResult,
  type SplitResult,
  trainingFolder,
  writeResult,
} from "./result-file.js";

/** How to train, and callbacks. */
export interface TrainingOptions extends Omit<ChildOptions, "onLine"> {
  /** Take runs even from processes that cannot be seen from here. */
  readonly forceUnlock: boolean;
  /** Stop after this many updates; the run can go on from there. */
  readonly until?: number;
  /** Settings for a run that goes on, as flags. */
  readonly changes?: readonly string[];
  /** Callback with the progress from 0 to 1 and a message. */
  readonly onProgress: (share: number, text: string) => void;
}

/** How to run jobs, and callbacks. */
export interface JobOptions extends TrainingOptions {
  readonly evaluation: EvaluationSize;
  /** The address of the engine server to use instead of the configuration's. */
  readonly engine?: (() => Promise<string>) | undefined;
}

/** The final evaluation as a rough share of the whole work, for progress only. */
const EVALUATION_SHARE = 0.1;

/** What a job's folder is for; the path of the start model makes no difference. */
export const jobClaim = ({ folder, config }: Job, evaluation: EvaluationSize): Claim => ({
  folder,
  settings: { ...config, model: { ...config.model, start: "start" } },
  evaluation,
});

/** Trains and evaluates one arm with one seed, unless that is already done. */
export async function runJob(job: Job, options: JobOptions): Promise<JobResult> {
  const { folder, config, setting, algorithm, arm, start, seed } = job;
  const { evaluation } = options;
  claim(jobClaim(job, evaluation));
  const done = readResult(folder);
  if (done !== undefined) return done;
  const placed = onEngine(config, await options.engine?.());
  const training = await timed(() => train("train", folder, placed, options));
  const model = trainingFolder(folder);
  const evaluated = await timed(() =>
    evaluate({ folder, model, config: placed, seed, size: evaluation }, options),
  );
  const phases = { training: training.seconds, evaluation: evaluated.seconds };
  const what = { setting, ...(start !== "" && { start }), algorithm, arm, seed, evaluation };
  return writeResult(folder, { ...what, splits: evaluated.value, phases });
}

/** A result and how long it took. */
export async function timed<T>(
  work: () => Promise<T>,
): Promise<{ readonly value: T; readonly seconds: number }> {
  const begin = performance.now();
  const value = await work();
  return { value, seconds: (performance.now() - begin) / 1000 };
}

/** The configuration with the job's engine server; which server it is makes no difference. */
export function onEngine<C extends Pick<TrainConfig, "engine">>(
  config: C,
  address: string | undefined,
): C {
  return address === undefined ? config : { ...config, engine: { ...config.engine, address } };
}

/** Runs `pawl train` or `pawl rwml` in the job's folder, or resumes it there. */
export async function train(
  command: "train" | "rwml",
  folder: string,
  config: Pick<TrainConfig, "engine" | "updates">,
  options: TrainingOptions,
): Promise<void> {
  const run = trainingFolder(folder);
  const path = join(folder, "train.json");
  mkdirSync(folder, { recursive: true });
  writeSmallFile(path, `${JSON.stringify(config, undefined, 2)}\n`);
  // The children of a killed comparison live on for a moment, until they notice that nobody listens.
  while (findLock(run).owner?.pid !== undefined) {
    options.onProgress(0, "waiting for the process that is still writing to it");
    await setTimeout(500, undefined, { signal: options.signal });
  }
  if (hasManifest(run)) {
    if (openRun(run, () => undefined).manifest.status === "done") return;
  }
  requireFree(run, { force: options.forceUnlock });
  // Killed before its first checkpoint: nothing to resume, and its start may be elsewhere now.
  const checkpoint = latestCheckpoint(run);
  if (existsSync(run) && checkpoint === undefined) rmSync(run, { recursive: true });
  const before = (checkpoint?.state.updates ?? 0) / Math.max(config.updates, 1);
  options.onProgress(before * (1 - EVALUATION_SHARE), "starts");
  const moved = isRemote(config.engine) ? ["--engine", config.engine.address] : [];
  const { until, changes = [] } = options;
  const args = checkpoint
    ? ["--resume", run, ...moved, ...changes]
    : ["--config", path, "--out", run];
  const unlock = checkpoint && options.forceUnlock ? ["--force-unlock"] : [];
  const enough = new AbortController();
  const child = runChild([command, ...args, ...unlock], {
    ...options,
    signal: AbortSignal.any([options.signal, enough.signal]),
    onLine(line) {
      const [, update, updates] = /update (\d+)\/(\d+)/.exec(line) ?? [];
      const share = update === undefined ? before : Number(update) / Number(updates);
      options.onProgress(share * (1 - EVALUATION_SHARE), line.trim());
      // An update is counted once its numbers are recorded.
      if (until !== undefined && Number(update) >= until) enough.abort();
    },
  });
  try {
    await child;
  } catch (error) {
    if (options.signal.aborted || !enough.signal.aborted) throw error;
  }
}

/** The final evaluation, with its progress. */
export function evaluate(
  what: JobEvaluation,
  options: JobOptions,
): Promise<Readonly<Record<string, SplitResult>>> {
  const onSplit = (split: string) => options.onProgress(1 - EVALUATION_SHARE, `evaluates ${split}`);
  return evaluateJob(what, { ...options, onSplit });
}

/**
 * One run of a comparison, in steps that are each done once: train, evaluate, write down what came of it.
 *
 *   job.json      what the run is; another comparison in the same folder is refused
 *   run/          the training run
 *   result.json   the final evaluation; where it is there, the job is done
 *
 * Called again after an interruption, or after being killed, it goes on where it stopped.
 */
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
} from "node:fs";
import { cpus } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import { UserError } from "../errors.js";
import { latestCheckpoint } from "../runs/checkpoints.js";
import { hasManifest } from "../runs/manifest.js";
import { openRun } from "../runs/run-folder.js";
import { writeSmallFile } from "../runs/small-file.js";
import type { TrainConfig } from "../train/config.js";
import { isRemote } from "../train/engines.js";
import { findSavedModel, REFERENCE } from "../train/saved-model.js";
import { type ChildOptions, runChild } from "./child.js";
import type { Job, Start } from "./matrix.js";

/** How the model of a job did on one split. */
export interface SplitResult {
  readonly success: number;
  readonly episodes: number;
  readonly broken: number;
  readonly invalid?: number;
  readonly steps?: number;
}

/** What came of a job; of a warm start too, which has no arm and no seed. */
export interface JobResult {
  readonly setting: string;
  readonly algorithm?: Job["algorithm"];
  readonly arm?: string;
  readonly seed?: number;
  readonly splits: Readonly<Record<string, SplitResult>>;
  /** Seconds this took, training and evaluation, in the call that finished it. */
  readonly seconds: number;
  readonly finishedAt: string;
  readonly machine: string;
}

/** How jobs are carried out. */
export interface JobOptions extends Omit<ChildOptions, "onLine"> {
  readonly evalTasks: number;
  readonly evalRounds: number;
  /** The engine server to use, in place of what the configuration says. */
  readonly engine?: string | undefined;
  /** Told how far it is, from 0 to 1, and in words. */
  readonly onProgress: (share: number, text: string) => void;
}

const RESULT = "result.json";
const TRAINING = "run";
/** What the final evaluation is of the whole work, roughly: for progress only. */
const EVALUATION_SHARE = 0.1;

/** The folder of a job's training run. */
export const trainingFolder = (folder: string): string => join(folder, TRAINING);

/** The result of a finished job, or undefined. */
export function readResult(folder: string): JobResult | undefined {
  const path = join(folder, RESULT);
  return existsSync(path) ? (JSON.parse(readFileSync(path, "utf8")) as JobResult) : undefined;
}

/** Trains and evaluates one arm with one seed, as far as that is not done yet. */
export async function runJob(job: Job, options: JobOptions): Promise<JobResult> {
  const { folder, config, setting, algorithm, arm, seed } = job;
  // Where the start model lies is no difference.
  claim(folder, { ...config, model: { ...config.model, start: "start" } });
  const done = readResult(folder);
  if (done !== undefined) return done;
  const begin = performance.now();
  const placed = onEngine(config, options);
  await train(folder, placed, options);
  const splits = await evaluate(folder, trainingFolder(folder), placed, seed, options);
  return writeResult(folder, { setting, algorithm, arm, seed, splits }, begin);
}

/** Makes the model that a setting's runs begin with, or takes the one that is named, as far as not done yet. */
export async function runStart(
  start: Start,
  options: JobOptions & { readonly from?: string | undefined; readonly threads: number },
): Promise<JobResult> {
  const { folder, setting } = start;
  const placed = onEngine(start.config, options);
  // The runs that begin with it may be on other servers, so that its weights are wanted here.
  const engine = { ...placed.engine, threads: options.threads, copy: isRemote(placed.engine) };
  const config = { ...placed, engine };
  claim(folder, start.config);
  const done = readResult(folder);
  if (done !== undefined) return done;
  const begin = performance.now();
  const model = join(folder, "model");
  if (options.from === undefined) {
    await train(folder, config, options);
    const run = trainingFolder(folder);
    copyModel({ weights: join(run, REFERENCE), tokenizer: join(run, "tokenizer") }, model);
  } else copyModel(findSavedModel(options.from), model);
  const splits = await evaluate(folder, model, config, config.seed, options);
  return writeResult(folder, { setting, splits }, begin);
}

/** The configuration with the engine server that was given to the job; which one it is makes no difference. */
function onEngine(config: TrainConfig, { engine: name }: JobOptions): TrainConfig {
  return name === undefined ? config : { ...config, engine: { ...config.engine, name } };
}

/** Notes what the folder is for, and refuses one that is for something else. */
function claim(folder: string, config: TrainConfig): void {
  const path = join(folder, "job.json");
  const wanted = JSON.parse(JSON.stringify(config)) as unknown;
  mkdirSync(folder, { recursive: true });
  if (!existsSync(path)) writeSmallFile(path, `${JSON.stringify(wanted, undefined, 2)}\n`);
  else if (!isDeepStrictEqual(JSON.parse(readFileSync(path, "utf8")), wanted)) {
    throw new UserError(
      `${folder} was begun with other settings (${path}): name another --out, or remove that folder`,
    );
  }
}

async function train(folder: string, config: TrainConfig, options: JobOptions): Promise<void> {
  const run = trainingFolder(folder);
  const path = join(folder, "train.json");
  writeSmallFile(path, `${JSON.stringify(config, undefined, 2)}\n`);
  // Killed before it was a run.
  if (existsSync(run) && !hasManifest(run)) rmSync(run, { recursive: true });
  if (hasManifest(run)) {
    // A killed comparison leaves its children behind for a moment: they end when nobody listens.
    while (openRun(run, () => undefined).active) {
      options.onProgress(0, "waits for the process that still writes to it");
      await setTimeout(500, undefined, { signal: options.signal });
    }
    if (openRun(run, () => undefined).manifest.status === "done") return;
  }
  const before = (latestCheckpoint(run)?.state.updates ?? 0) / Math.max(config.updates, 1);
  options.onProgress(before * (1 - EVALUATION_SHARE), "starts");
  const moved = isRemote(config.engine) ? ["--engine", config.engine.name] : [];
  const args = hasManifest(run) ? ["--resume", run, ...moved] : ["--config", path, "--out", run];
  await runChild(["train", ...args], {
    ...options,
    onLine(line) {
      const [, update, updates] = /update (\d+)\/(\d+)/.exec(line) ?? [];
      const share = update === undefined ? before : Number(update) / Number(updates);
      options.onProgress(share * (1 - EVALUATION_SHARE), line.trim());
    },
  });
}

async function evaluate(
  folder: string,
  model: string,
  config: TrainConfig,
  seed: number,
  options: JobOptions,
): Promise<Readonly<Record<string, SplitResult>>> {
  const results: Record<string, SplitResult> = {};
  const { evaluation, env, prompt, maxTokens, stepLimit, engine } = config;
  const settings = { env, prompt, maxTokens, stepLimit, engine };
  const path = join(folder, "eval.json");
  for (const split of evaluation.splits) {
    const rounds: SplitResult[] = [];
    for (let round = 0; round < options.evalRounds; round++) {
      options.onProgress(1 - EVALUATION_SHARE, `evaluates ${split}`);
      const out = join(folder, "evaluation");
      rmSync(out, { recursive: true, force: true });
      const tasks = options.evalTasks;
      const { temperature } = evaluation;
      // The same tasks and draws for every arm of a seed, so that differences between arms are paired.
      const content = {
        ...settings,
        split,
        tasks,
        temperature,
        checkpoint: model,
        json: true,
        out,
      };
      writeSmallFile(path, `${JSON.stringify({ ...content, seed: seed + 1_000_003 * round })}\n`);
      const printed = await runChild(["eval", "--config", path], options);
      rounds.push(JSON.parse(printed) as SplitResult);
      rmSync(out, { recursive: true, force: true });
    }
    results[split] = together(rounds);
  }
  return results;
}

/** Several rounds as one; broken episodes are in no mean. */
function together(rounds: readonly SplitResult[]): SplitResult {
  const sum = (of: (round: SplitResult) => number) => rounds.reduce((all, r) => all + of(r), 0);
  const episodes = sum((round) => round.episodes);
  const mean = (of: (round: SplitResult) => number | undefined) =>
    sum((round) => (of(round) ?? 0) * round.episodes) / Math.max(episodes, 1);
  return {
    success: mean((round) => round.success),
    episodes,
    broken: sum((round) => round.broken),
    invalid: mean((round) => round.invalid),
    steps: mean((round) => round.steps),
  };
}

/** Weights and tokenizer in one folder, which gets its name when both are in it. */
function copyModel(
  { weights, tokenizer }: { readonly weights: string; readonly tokenizer: string },
  to: string,
): void {
  const temporary = `${to}.tmp`;
  rmSync(temporary, { recursive: true, force: true });
  mkdirSync(temporary, { recursive: true });
  for (const [folder, files] of [
    [weights, /^(config\.json|model.*\.(safetensors|json))$/],
    [tokenizer, /^(tokenizer.*\.json|chat_template\.jinja)$/],
  ] as const) {
    for (const name of readdirSync(folder).filter((file) => files.test(file)))
      cpSync(join(folder, name), join(temporary, name));
  }
  rmSync(to, { recursive: true, force: true });
  renameSync(temporary, to);
}

function writeResult(
  folder: string,
  what: Pick<JobResult, "setting" | "algorithm" | "arm" | "seed" | "splits">,
  begin: number,
): JobResult {
  const result: JobResult = {
    ...what,
    seconds: (performance.now() - begin) / 1000,
    finishedAt: new Date().toISOString(),
    machine: `${cpus().length} × ${cpus()[0]?.model ?? "unknown"}, Node ${process.version}`,
  };
  writeSmallFile(join(folder, RESULT), `${JSON.stringify(result, undefined, 2)}\n`);
  return result;
}

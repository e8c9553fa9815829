/**
 * One run of a comparison, in stages that are each done once: train, evaluate, write the result.
 *
 *   job.json      what the run is; another comparison in the same folder is refused
 *   run/          the training run
 *   result.json   the final evaluation; if it exists, the job is done
 *
 * Called again after an interruption or a kill, it resumes where it stopped.
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

/** How a job's model did on one split. */
export interface SplitResult {
  readonly success: number;
  readonly episodes: number;
  readonly broken: number;
  readonly invalid?: number;
  readonly steps?: number;
}

/** The result of a job. A warm start has one too, without arm and seed. */
export interface JobResult {
  readonly setting: string;
  readonly algorithm?: Job["algorithm"];
  readonly arm?: string;
  readonly seed?: number;
  readonly splits: Readonly<Record<string, SplitResult>>;
  /** Seconds for training and evaluation in the call that finished it. */
  readonly seconds: number;
  readonly finishedAt: string;
  readonly machine: string;
}

/** How to run jobs, and callbacks. */
export interface JobOptions extends Omit<ChildOptions, "onLine"> {
  readonly evalTasks: number;
  readonly evalRounds: number;
  /** The engine server to use instead of the configuration's. */
  readonly engine?: string | undefined;
  /** Callback with the progress from 0 to 1 and a message. */
  readonly onProgress: (share: number, text: string) => void;
}

const RESULT = "result.json";
const TRAINING = "run";
/** The final evaluation as a rough share of the whole work, for progress only. */
const EVALUATION_SHARE = 0.1;

/** The folder of a job's training run. */
export const trainingFolder = (folder: string): string => join(folder, TRAINING);

/** The result of a finished job, or undefined. */
export function readResult(folder: string): JobResult | undefined {
  const path = join(folder, RESULT);
  return existsSync(path) ? (JSON.parse(readFileSync(path, "utf8")) as JobResult) : undefined;
}

/** Trains and evaluates one arm with one seed, unless that is already done. */
export async function runJob(job: Job, options: JobOptions): Promise<JobResult> {
  const { folder, config, setting, algorithm, arm, seed } = job;
  // The path of the start model makes no difference.
  claim(folder, { ...config, model: { ...config.model, start: "start" } });
  const done = readResult(folder);
  if (done !== undefined) return done;
  const begin = performance.now();
  const placed = onEngine(config, options);
  await train(folder, placed, options);
  const splits = await evaluate(folder, trainingFolder(folder), placed, seed, options);
  return writeResult(folder, { setting, algorithm, arm, seed, splits }, begin);
}

/**
 * Trains the model that a setting's runs start from, or copies the given one, unless already done.
 */
export async function runStart(
  start: Start,
  options: JobOptions & { readonly from?: string | undefined; readonly threads: number },
): Promise<JobResult> {
  const { folder, setting } = start;
  const placed = onEngine(start.config, options);
  // The runs that start from it may be on other servers, so its weights are needed here.
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

/** The configuration with the job's engine server; which server it is makes no difference. */
function onEngine(config: TrainConfig, { engine: address }: JobOptions): TrainConfig {
  return address === undefined ? config : { ...config, engine: { ...config.engine, address } };
}

/** Records what the folder is for, and refuses one that is for something else. */
function claim(folder: string, config: TrainConfig): void {
  const path = join(folder, "job.json");
  const wanted = JSON.parse(JSON.stringify(config)) as unknown;
  mkdirSync(folder, { recursive: true });
  if (!existsSync(path)) writeSmallFile(path, `${JSON.stringify(wanted, undefined, 2)}\n`);
  else if (!isDeepStrictEqual(JSON.parse(readFileSync(path, "utf8")), wanted)) {
    throw new UserError(
      `${folder} was started with other settings (${path}): choose another --out, or remove that folder`,
    );
  }
}

async function train(folder: string, config: TrainConfig, options: JobOptions): Promise<void> {
  const run = trainingFolder(folder);
  const path = join(folder, "train.json");
  writeSmallFile(path, `${JSON.stringify(config, undefined, 2)}\n`);
  // Killed before it became a run.
  if (existsSync(run) && !hasManifest(run)) rmSync(run, { recursive: true });
  if (hasManifest(run)) {
    // The children of a killed comparison live on for a moment, until they notice that nobody
    // listens.
    while (openRun(run, () => undefined).active) {
      options.onProgress(0, "waiting for the process that is still writing to it");
      await setTimeout(500, undefined, { signal: options.signal });
    }
    if (openRun(run, () => undefined).manifest.status === "done") return;
  }
  const before = (latestCheckpoint(run)?.state.updates ?? 0) / Math.max(config.updates, 1);
  options.onProgress(before * (1 - EVALUATION_SHARE), "starts");
  const moved = isRemote(config.engine) ? ["--engine", config.engine.address] : [];
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
      // The same tasks and seeds for every arm of a seed, so that differences between arms are
      // paired.
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

/** Merges several rounds; broken episodes are excluded from all means. */
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

/** Copies weights and tokenizer into one folder, which is renamed once it has both. */
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
      cpSync(join(folder, name), join(temporary, name), { dereference: true });
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

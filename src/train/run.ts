/** A training run from its configuration to its run folder: prepare, warm start, RL, evaluation. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { ConfigError } from "../config/config-error.js";
import type { PresetName } from "../engine/embedded/init.js";
import type { Engine } from "../engine/engine.js";
import type { Environment } from "../envs/env.js";
import { openEnvironment } from "../envs/open.js";
import { mixSeed } from "../random.js";
import type { Episode, Group } from "../rollout/episode.js";
import { type Checkpoint, latestCheckpoint, saveCheckpoint } from "../runs/checkpoints.js";
import { hasManifest } from "../runs/manifest.js";
import type { MetricsLine } from "../runs/metrics-file.js";
import { createRun, type Run, resumeRun } from "../runs/run-folder.js";
import { promptStyle } from "../text/prompt.js";
import { loadTokenizer, type Tokenizer } from "../text/tokenizer.js";
import { buildTokenizer } from "../text/tokenizer-builder.js";
import { checkConfig } from "./checks.js";
import type { TrainConfig } from "./config.js";
import { type EngineModel, isRemote, openEngine, refuseMissing } from "./engines.js";
import { type EvaluatedModel, evaluateSplits } from "./evaluate.js";
import type { GradientCap } from "./gradient-cap.js";
import { describeLeftOut } from "./left-out.js";
import { updateMetrics } from "./metrics.js";
import { type FinishedUpdate, trainRl } from "./rl.js";
import { findSavedModel, REFERENCE, TOKENIZER } from "./saved-model.js";
import { type SftStep, sft } from "./sft.js";
import { teacherEpisodes } from "./teacher-episodes.js";
import { worldTexts } from "./world-text.js";

/** Where to train, and who is told of it. */
export interface TrainOptions {
  readonly folder: string;
  /** Go on with the run that is in the folder. */
  readonly resume?: boolean;
  readonly signal?: AbortSignal;
  readonly onProblem?: (message: string) => void;
  readonly onPhase?: (phase: "tokenizer" | "model" | "warm start" | "rl") => void;
  readonly onWarmStart?: (step: SftStep) => void;
  readonly onMetrics?: (line: MetricsLine) => void;
}

/** What a run works with. */
type Setup = EvaluatedModel;

/** Trains as configured and records everything to the run folder. */
export async function trainRun(config: TrainConfig, options: TrainOptions): Promise<void> {
  const { folder } = options;
  // What cannot work is refused before there is a run.
  const environment = openEnvironment({ ...config.env, name: String(config.env.name) });
  checkConfig(config, environment);
  const start = startOf(config);
  const checkpoint = options.resume === true ? latestCheckpoint(folder) : undefined;
  const run =
    options.resume === true
      ? resumeFrom(folder, config, checkpoint, options)
      : startRun(config, options);
  let engine: Engine | undefined;
  try {
    const setup = await prepare(config, environment, start, checkpoint, options);
    engine = setup.engine;
    if (checkpoint === undefined) await warmStart(setup, config, run, options);
    options.onPhase?.("rl");
    await engine.load(join(folder, REFERENCE));
    // Nobody else asks for it, and it takes as much memory as the weights.
    if (config.objective.kl > 0) await engine.snapshotReference();
    if (checkpoint !== undefined) await engine.load(checkpoint.folder);
    await trainRl(
      {
        ...setup,
        firstUpdate: checkpoint?.state.updates ?? 0,
        optimizerSteps: checkpoint?.state.optimizerSteps ?? 0,
        gradientCap: capOf(checkpoint),
        ...(options.signal !== undefined && { signal: options.signal }),
        onEpisodes: async (groups, index) => recordEpisodes(groups, index, config, run, options),
        onUpdate: (done) => finishUpdate(done, setup, config, run, options),
      },
      config,
    );
  } catch (error) {
    const aborted = options.signal?.aborted === true;
    run.finish(
      aborted ? "interrupted" : "failed",
      aborted ? {} : { error: (error as Error).message },
    );
    throw error;
  } finally {
    await engine?.dispose();
  }
  run.finish("done");
}

function capOf(checkpoint: Checkpoint | undefined): GradientCap {
  const { policyGradient } = checkpoint?.state ?? {};
  return policyGradient === undefined ? {} : { running: policyGradient };
}

function startRun(config: TrainConfig, { folder, onProblem = ignore }: TrainOptions): Run {
  return createRun({ folder, kind: "train", seed: config.seed, config }, onProblem);
}

function resumeFrom(
  folder: string,
  config: TrainConfig,
  checkpoint: Checkpoint | undefined,
  { onProblem = ignore }: TrainOptions,
): Run {
  const updates = checkpoint?.state.updates ?? 0;
  return resumeRun(
    folder,
    {
      episode: (episode) => episode.group < updates * config.groups,
      // The line of an evaluation before the first update belongs to the warm start.
      metrics: (line) => checkpoint !== undefined && line.update! < updates,
    },
    onProblem,
  );
}

const ignore = (): void => undefined;

async function prepare(
  config: TrainConfig,
  environment: Environment,
  start: ModelStart,
  checkpoint: Checkpoint | undefined,
  options: TrainOptions,
): Promise<Setup> {
  const { folder } = options;
  const style = promptStyle(environment.promptFamily, config.prompt);
  options.onPhase?.("tokenizer");
  const saved = join(folder, TOKENIZER);
  const read =
    checkpoint !== undefined
      ? await loadTokenizer(saved)
      : "served" in start
        ? undefined
        : "folder" in start
          ? await loadTokenizer(start.tokenizer)
          : buildTokenizer(await worldTexts(environment, style));
  options.onPhase?.("model");
  const engine = await openEngine(config.engine, modelOf(config, start, read, checkpoint, folder), {
    seed: config.seed,
    valueHead: config.advantage.name === "ppo",
    ...(options.onProblem !== undefined && { onNotice: options.onProblem }),
  });
  try {
    refuseMissing(needsOf(config), engine.capabilities);
    const tokenizer = read ?? (await servedTokenizer(engine, join(folder, REFERENCE)));
    if (checkpoint === undefined) await tokenizer.save(saved);
    return { environment, style, tokenizer, engine };
  } catch (error) {
    await engine.dispose();
    throw error;
  }
}

/** What the engine starts from; a run on a server goes on from what it saved there. */
function modelOf(
  config: TrainConfig,
  start: ModelStart,
  tokenizer: Tokenizer | undefined,
  checkpoint: Checkpoint | undefined,
  folder: string,
): EngineModel {
  if (checkpoint !== undefined && isRemote(config.engine))
    return { folder: join(folder, REFERENCE) };
  return engineModel(start, tokenizer?.vocabularySize ?? 0, config.model.maxContext);
}

/** A start as engines take it; a model from scratch needs to know its vocabulary and context. */
export function engineModel(
  start: ModelStart,
  vocabularySize: number,
  maxContext: number,
): EngineModel {
  if ("served" in start) return start;
  return "folder" in start ? { folder: start.folder } : { ...start, vocabularySize, maxContext };
}

/** The tokenizer that a server's model comes with: a saved model has it beside its weights. */
async function servedTokenizer(engine: Engine, folder: string): Promise<Tokenizer> {
  await engine.save(folder, { optimizer: false });
  return loadTokenizer(folder);
}

function needsOf({ advantage, objective, paw, gradientSample }: TrainConfig) {
  return {
    values: advantage.name === "ppo",
    entropies: objective.entropy > 0 || (paw.loss !== "off" && paw.entropy === "full"),
    discardGradients:
      paw.loss !== "off" && (gradientSample > 0 || paw.gradientLength !== undefined),
  };
}

export type ModelStart =
  | { readonly preset: PresetName }
  | { readonly folder: string; readonly tokenizer: string }
  | { readonly served: true };

const PRESETS: readonly PresetName[] = ["tiny", "small", "base"];

/** What the model starts from; a name that is no preset must be a run, or a folder with a checkpoint in it. */
export function startOf(config: Pick<TrainConfig, "model" | "engine">): ModelStart {
  const { start } = config.model;
  const preset = PRESETS.find((name) => name === start);
  if (preset !== undefined) return { preset };
  if (start === "served" && isRemote(config.engine)) return { served: true };
  if (hasManifest(start)) {
    const { weights, tokenizer } = findSavedModel(start);
    return { folder: weights, tokenizer };
  }
  if (!existsSync(join(start, "config.json"))) {
    throw new ConfigError(
      `model.start: there is no checkpoint in ${start} (a run folder, or a folder with config.json, model.safetensors and tokenizer.json). Put one there, name another folder, or start from scratch with --model.start ${PRESETS.join(", ")}.`,
    );
  }
  const { tokenizer } = findSavedModel(start);
  return { folder: start, tokenizer };
}

/** Imitates expert episodes, evaluates what came of it, and keeps it as the reference. */
async function warmStart(
  setup: Setup,
  config: TrainConfig,
  run: Run,
  options: TrainOptions,
): Promise<void> {
  const { engine } = setup;
  const { episodes, sft: sftOptions } = config.warmStart;
  options.onPhase?.("warm start");
  if (episodes > 0) {
    await sft(engine, await teacherEpisodes(setup, config, options), setup, {
      ...sftOptions,
      seed: config.seed,
      ...(options.onWarmStart !== undefined && { onStep: options.onWarmStart }),
      ...(options.signal !== undefined && { signal: options.signal }),
    });
  }
  // A server's own model was saved for its tokenizer, and is as it was.
  const isSaved = episodes === 0 && "served" in startOf(config);
  if (!isSaved) await engine.save(join(run.folder, REFERENCE), { optimizer: false });
  report({ update: -1, ...(await evaluateAll(setup, config, -1, options)) }, run, options);
}

function recordEpisodes(
  groups: readonly Group[],
  index: number,
  config: TrainConfig,
  run: Run,
  options: TrainOptions,
): void {
  const offset = index * config.groups;
  const episodes = groups.flatMap(({ episodes }): readonly Episode[] =>
    episodes.map((episode) => ({ ...episode, group: offset + episode.group })),
  );
  run.recordEpisodes(episodes);
  tellLeftOut(`update ${index + 1}`, episodes, options);
}

async function finishUpdate(
  done: FinishedUpdate,
  setup: Setup,
  config: TrainConfig,
  run: Run,
  options: TrainOptions,
): Promise<void> {
  const { index, optimizerSteps } = done;
  const last = index + 1 === config.updates;
  const { every } = config.evaluation;
  const due = every > 0 && ((index + 1) % every === 0 || last);
  const evaluation = due ? await evaluateAll(setup, config, index, options) : {};
  report({ ...updateMetrics(done), ...evaluation }, run, options);
  if ((index + 1) % config.checkpointEvery === 0 || last) {
    const { running } = done.gradientCap;
    const state = {
      updates: index + 1,
      optimizerSteps,
      ...(running !== undefined && { policyGradient: running }),
    };
    await saveCheckpoint(run.folder, state, async (folder) => {
      await setup.engine.save(folder);
      await setup.tokenizer.save(folder);
    });
  }
}

function tellLeftOut(where: string, episodes: readonly Episode[], options: TrainOptions): void {
  const message = describeLeftOut(where, episodes);
  if (message !== undefined) options.onProblem?.(message);
}

function report(line: MetricsLine, run: Run, options: TrainOptions): void {
  run.recordMetrics(line);
  options.onMetrics?.(line);
}

function evaluateAll(
  setup: Setup,
  config: TrainConfig,
  index: number,
  options: TrainOptions,
): Promise<MetricsLine> {
  const { signal } = options;
  return evaluateSplits(setup, config, mixSeed(config.seed, "evaluation", index), {
    ...(signal !== undefined && { signal }),
    onSplit: (split, played) => tellLeftOut(`evaluation on ${split}`, played, options),
  });
}

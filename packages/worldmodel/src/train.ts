/**
 * WM-SFT: a model learns to answer actions as the world does.
 *
 * Cross-entropy on the response tokens only, an episode as one sequence, successes and failures
 * alike. Defaults that differ from the paper's settings (batch 128, constant 1e-5, gradients
 * clipped at 100) are for models from scratch; for a pretrained model the paper's can be set.
 */
import { join } from "node:path";
import type { Engine, TrainSequence } from "@pawl/core/engine/engine.js";
import { supervisedObjective } from "@pawl/core/objectives/supervised.js";
import { createRandom, mixSeed } from "@pawl/core/random.js";
import type { Checkpoint } from "@pawl/core/runs/checkpoints.js";
import { sealFolder } from "@pawl/core/runs/checksums.js";
import type { MetricsLine } from "@pawl/core/runs/metrics-file.js";
import type { Tokenizer } from "@pawl/core/text/tokenizer.js";
import { buildTokenizer } from "@pawl/core/text/tokenizer-builder.js";
import { learningRate } from "@pawl/core/train/schedule.js";
import { asMean } from "@pawl/core/train/sft.js";
import { refuseIgnoredSettings } from "@pawl/training/applies.js";
import {
  checkpointRun,
  conductRun,
  isDue,
  openTrainingRun,
  type RunKind,
  type RunningRun,
  type RunOptions,
  resumedCheckpoint,
} from "@pawl/training/lifecycle.js";
import { type ModelStart, openModel, originOf, startOf } from "@pawl/training/open-model.js";
import { TOKENIZER } from "@pawl/training/saved-model.js";
import { type WorldTrainConfig, worldTrainConfig } from "./config.js";
import { DataError, parseBudgets, readDataSets, withinBudgets } from "./dataset.js";
import { createDialogue, dialogueSequence } from "./dialogue.js";
import { fidelityReport, scoreTurns } from "./fidelity.js";
import { engineWorldModel } from "./model.js";
import type { Protocol } from "./protocol.js";
import { WORLD_RUN, worldConfigOf } from "./saved.js";
import { createProblems, type Problems, type Trajectory } from "./trajectory.js";

/** What happened at one optimiser step. */
export interface WorldTrainStep {
  readonly step: number;
  readonly steps: number;
  readonly loss: number;
}

/** Where to train, and callbacks. */
export interface WorldTrainOptions extends RunOptions {
  readonly onPhase?: (phase: "data" | "model" | "learn") => void;
  readonly onStep?: (step: WorldTrainStep) => void;
}

/** The folder of a finished run that other training can start from. */
export const MODEL = "model";
/** Where a server's own model is saved for its tokenizer. */
const SERVED = "served";

/** Optimiser steps per line of metrics, which has their mean loss. */
const METRICS_EVERY = 25;

/** Trains as configured and records everything to the run folder. */
export async function trainWorldModel(
  config: WorldTrainConfig,
  options: WorldTrainOptions,
): Promise<void> {
  const { folder } = options;
  const problems = createProblems(options.onProblem);
  // Whatever cannot work is refused before the run starts.
  refuseIgnoredSettings(worldTrainConfig, config, options);
  const checkpoint = resumedCheckpoint(options);
  const start =
    checkpoint === undefined
      ? await startOf(config, { onNotice: options.onProblem, signal: options.signal })
      : startAt(checkpoint, folder);
  options.onPhase?.("data");
  const data = readDataSets(config.data, problems);
  const train = withinBudgets(data.train, parseBudgets(config.budget), config.seed);
  if (train.length === 0) {
    throw new DataError(
      `${config.data.join(", ")}: there is nothing to learn from within --budget`,
    );
  }
  const kind = kindOf(Math.ceil(train.length / config.batch));
  const run = openTrainingRun(kind, config, checkpoint, options, originOf(start));
  const { track } = config;
  const watched = { ...options, kind: "wm train", groupsPerUpdate: 0, track };
  await conductRun(run, watched, async (running) => {
    options.onPhase?.("model");
    const model = await openModel({
      start,
      engine: config.engine,
      scratch: {
        maxContext: config.model.maxContext,
        tokenizer: () => buildTokenizer(textsOf(train, config.protocol)),
      },
      servedFolder: join(folder, SERVED),
      seed: config.seed,
      onNotice: options.onProblem,
    });
    const { tokenizer } = model;
    const engine = running.own(model.engine);
    if (checkpoint === undefined) {
      run.requireOwn();
      await tokenizer.save(join(folder, TOKENIZER));
      sealFolder(join(folder, TOKENIZER));
    } else await engine.load(checkpoint.folder);
    const sequences = toSequences(train, tokenizer, config.protocol, engine, problems);
    options.onPhase?.("learn");
    await learn(
      { engine, tokenizer, sequences, test: data.test, running, checkpoint },
      config,
      options,
    );
    running.run.requireOwn();
    // Without the optimiser's state: what starts from here learns something else.
    await engine.save(join(folder, MODEL), { optimizer: false });
    await tokenizer.save(join(folder, MODEL));
    sealFolder(join(folder, MODEL));
    return undefined;
  });
}

/** Where a run that has a checkpoint resumes. */
const startAt = ({ folder }: Checkpoint, run: string): ModelStart => ({
  folder,
  tokenizer: join(run, TOKENIZER),
});

/** An update is an optimiser step here, and an epoch has this many; no episode is recorded. */
const kindOf = (perEpoch: number): RunKind<WorldTrainConfig> => ({
  kind: WORLD_RUN,
  recorded: worldConfigOf,
  length: "epochs",
  lengthOf: ({ epochs }) => epochs,
  lengthDone: ({ updates }) => Math.ceil(updates / perEpoch),
  stepsInAll: ({ epochs }) => epochs * perEpoch,
  groupsPerUpdate: 0,
});

/**
 * Every text of the trajectories once, to train their tokenizer. Pass training trajectories only: a
 * word that only the test has must be spelled from pieces, as any new word would be.
 */
export function textsOf(trajectories: readonly Trajectory[], { marker }: Protocol): Set<string> {
  const texts = new Set([` ${marker}`]);
  for (const { goal, context = "", firstObservation, turns } of trajectories) {
    for (const text of [goal, context, firstObservation]) texts.add(text);
    for (const { action, observation } of turns) texts.add(action).add(observation);
  }
  return texts;
}

function toSequences(
  trajectories: readonly Trajectory[],
  tokenizer: Tokenizer,
  protocol: Protocol,
  { capabilities: { maxContext } }: Engine,
  problems: Problems,
): readonly TrainSequence[] {
  const dialogue = createDialogue(tokenizer, protocol);
  const sequences = trajectories.flatMap((trajectory): readonly TrainSequence[] => {
    const { ids, responses } = dialogueSequence(dialogue, trajectory, maxContext);
    const where = `task ${trajectory.task} of ${trajectory.env}`;
    if (responses.length < trajectory.turns.length) {
      const whole = responses.length === 0 ? "no turn fits" : "later turns do not fit";
      problems.add(`${whole} into the model's ${maxContext} tokens`, where);
    }
    if (responses.length === 0) return [];
    const weight = new Float32Array(ids.length);
    for (const { start, end } of responses) weight.fill(1, start, end);
    return [{ ids, targets: Uint8Array.from(weight), inputs: { weight } }];
  });
  if (sequences.length === 0) {
    throw new DataError(
      `no trajectory fits into the model's ${maxContext} tokens: set --model.max-context higher, or leave the initial state out with --no-protocol.context`,
    );
  }
  return sequences;
}

interface Training {
  readonly engine: Engine;
  readonly tokenizer: Tokenizer;
  readonly sequences: readonly TrainSequence[];
  readonly test: readonly Trajectory[];
  readonly running: RunningRun;
  readonly checkpoint: Checkpoint | undefined;
}

async function learn(
  training: Training,
  config: WorldTrainConfig,
  options: WorldTrainOptions,
): Promise<void> {
  const { engine, tokenizer, sequences, running } = training;
  const { epochs, batch, optimizer, evaluation, checkpointEvery, seed } = config;
  const perEpoch = Math.ceil(sequences.length / batch);
  const steps = epochs * perEpoch;
  const losses: number[] = [];
  let order: readonly TrainSequence[] = [];
  for (let step = training.checkpoint?.state.updates ?? 0; step < steps; step++) {
    options.signal?.throwIfAborted();
    const within = step % perEpoch;
    // Every epoch has its own seed, so that a resumed run has the same order.
    if (within === 0 || order.length === 0) {
      order = createRandom(mixSeed(seed, "epoch", Math.floor(step / perEpoch))).shuffle([
        ...sequences,
      ]);
    }
    const some = order.slice(within * batch, (within + 1) * batch);
    const { loss } = await engine.forwardBackward(asMean(some), supervisedObjective);
    const rate = learningRate(optimizer, step, steps);
    const { gradNorm } = await engine.optimStep({ ...optimizer, learningRate: rate });
    losses.push(loss);
    options.onStep?.({ step, steps, loss });
    const due = (every: number): boolean => isDue(every, step + 1, steps);
    const evaluated = due(evaluation.every) ? await evaluate(training, config, options) : {};
    if (due(METRICS_EVERY) || Object.keys(evaluated).length > 0 || due(checkpointEvery)) {
      const mean = losses.reduce((sum, one) => sum + one, 0) / losses.length;
      losses.length = 0;
      const line = { update: step, "wm.loss": mean, gradNorm, learningRate: rate, ...evaluated };
      running.report(line);
    }
    if (due(checkpointEvery)) {
      const state = { updates: step + 1, optimizerSteps: step + 1 };
      await checkpointRun(running.run, state, [engine, tokenizer]);
    }
  }
}

async function evaluate(
  { engine, tokenizer, test }: Training,
  { protocol, maxTokens, evaluation, seed }: WorldTrainConfig,
  { signal, onActivity }: WorldTrainOptions,
): Promise<MetricsLine> {
  if (test.length === 0) return {};
  const model = engineWorldModel({ engine, tokenizer, protocol, maxTokens });
  const some = createRandom(mixSeed(seed, "evaluation")).shuffle([...test]);
  const asked = some.slice(0, evaluation.trajectories);
  const total = asked.reduce((sum, { turns }) => sum + turns.length, 0);
  const onTurns = (done: number): void =>
    onActivity?.({ what: "evaluating", done, total, unit: "turns" });
  onTurns(0);
  const turns = await scoreTurns(model, asked, { signal, onTurns });
  const { exactMatch, f1, successAccuracy } = fidelityReport(turns).all;
  return { "wm.exactMatch": exactMatch, "wm.f1": f1, "wm.successAccuracy": successAccuracy };
}

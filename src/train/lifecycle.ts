/**
 * The life of a training run, shared by RL, RWML and world models: started or resumed, reported on,
 * checkpointed, ended.
 *
 * Whatever cannot work is refused before a run starts. A resumed run keeps what was recorded up to
 * its checkpoint, and repeats the rest. However a run ends, its engines are disposed of and its
 * folder says how it ended.
 */
import { join } from "node:path";
import type { SettingsTree } from "../config/settings-tree.js";
import type { Engine } from "../engine/engine.js";
import type { ModelOrigin } from "../models/model-origin.js";
import { mixSeed } from "../random.js";
import type { Episode, Group } from "../rollout/episode.js";
import {
  type Checkpoint,
  type CheckpointState,
  latestCheckpoint,
  saveCheckpoint,
} from "../runs/checkpoints.js";
import type { MetricsLine } from "../runs/metrics-file.js";
import { createRun, finishFailed, type Run, resumeRun } from "../runs/run-folder.js";
import type { TrainConfig } from "./config.js";
import { type EvaluatedModel, evaluateSplits } from "./evaluate.js";
import { describeLeftOut } from "./left-out.js";
import { olderNamesNotice } from "./recorded-config.js";
import { refuseShorter, resumeChanges, scheduleNotice } from "./resume.js";
import { REFERENCE } from "./saved-model.js";
import type { OptimizerOptions } from "./schedule.js";

/** Where to train, and callbacks. */
export interface RunOptions {
  readonly folder: string;
  /** Resume the run that is in the folder. */
  readonly resume?: boolean;
  /** Where a setting was given, for errors; default: its flag. */
  readonly placeOf?: ((path: readonly string[]) => string) | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly onProblem?: (message: string) => void;
  readonly onMetrics?: (line: MetricsLine) => void;
}

/** Settings that every kind of training has. */
interface RunConfig extends SettingsTree {
  readonly seed: number;
  readonly optimizer: OptimizerOptions;
}

/** How a kind of run differs when it is started or resumed. */
export interface RunKind<C extends RunConfig> {
  /** The command that makes it, as in its manifest. */
  readonly kind: string;
  /** The settings it was recorded with. */
  recorded(folder: string): C;
  /** The setting for its length. */
  readonly length: "updates" | "epochs";
  /** That setting's value, and how many of them are done at a checkpoint. */
  lengthOf(config: C): number;
  lengthDone(state: CheckpointState): number;
  /** Optimiser steps of the whole run, extrapolated from a checkpoint; for the learning rate. */
  stepsInAll(config: C, state: CheckpointState): number;
  /** Groups of episodes that an update records. */
  readonly groupsPerUpdate: number;
}

const NOTHING_DONE: CheckpointState = { updates: 0, optimizerSteps: 0 };
const ignore = (): void => undefined;

/** The checkpoint to resume from, if a run is resumed and has one. */
export function resumedCheckpoint({ folder, resume }: RunOptions): Checkpoint | undefined {
  return resume === true ? latestCheckpoint(folder) : undefined;
}

/**
 * Starts a run, or resumes the one in the folder; a changed setting is recorded and reported, or
 * refused.
 */
export function openTrainingRun<C extends RunConfig>(
  kind: RunKind<C>,
  config: C,
  checkpoint: Checkpoint | undefined,
  options: RunOptions,
  start?: ModelOrigin,
): Run {
  const { folder, onProblem = ignore } = options;
  if (options.resume !== true)
    return createRun({ folder, kind: kind.kind, seed: config.seed, config, start }, onProblem);
  const older = olderNamesNotice(folder);
  if (older !== undefined) onProblem(older);
  const state = checkpoint?.state ?? NOTHING_DONE;
  const recorded = kind.recorded(folder);
  const resumption = { folder, length: kind.length, placeOf: options.placeOf };
  const changed = resumeChanges(recorded, config, resumption);
  refuseShorter(resumption, kind.lengthOf(config), kind.lengthDone(state));
  const lengthOf = (one: C) => ({
    length: kind.lengthOf(one),
    steps: kind.stepsInAll(one, state),
  });
  const schedule = { optimizer: config.optimizer, unit: kind.length, step: state.optimizerSteps };
  const notice = scheduleNotice(schedule, lengthOf(recorded), lengthOf(config));
  if (notice !== undefined) onProblem(notice);
  const keep = {
    episode: (episode: Episode) => episode.group < state.updates * kind.groupsPerUpdate,
    // Without a checkpoint the line before the first update is repeated too.
    metrics: (line: MetricsLine) => checkpoint !== undefined && line.update! < state.updates,
  };
  return resumeRun(folder, { keep, updates: state.updates, config, changed }, onProblem);
}

/** The settings of a run's evaluations. */
type EvaluatedConfig = Pick<TrainConfig, "evaluation" | "maxTokens" | "stepLimit" | "seed">;

/** Groups that are numbered starting at `first`. */
export interface NumberedGroups {
  readonly groups: readonly Group[];
  readonly first: number;
}

/** A run in progress. */
export interface RunningRun {
  readonly run: Run;
  /** Disposes of it when the run ends, however it ends. */
  own<T extends { dispose(): Promise<void> }>(opened: T): T;
  /** Records metrics and reports them. */
  report(line: MetricsLine): void;
  /**
   * Records the groups of an update, numbered through the whole run, and reports broken episodes.
   */
  recordEpisodes(where: string, ...parts: readonly NumberedGroups[]): void;
  /** Evaluates the model on every configured split, and reports broken episodes. */
  evaluate(model: EvaluatedModel, config: EvaluatedConfig, index: number): Promise<MetricsLine>;
}

/** Runs the work until its end; what the work returns is the run's summary. */
export async function conductRun(
  run: Run,
  options: RunOptions,
  work: (running: RunningRun) => Promise<MetricsLine | undefined>,
): Promise<void> {
  const owned: { dispose(): Promise<void> }[] = [];
  const tellLeftOut = (where: string, episodes: readonly Episode[]) => {
    const message = describeLeftOut(where, episodes);
    if (message !== undefined) options.onProblem?.(message);
  };
  let summary: MetricsLine | undefined;
  try {
    summary = await work({
      run,
      own(opened) {
        owned.push(opened);
        return opened;
      },
      report(line) {
        run.recordMetrics(line);
        options.onMetrics?.(line);
      },
      recordEpisodes(where, ...parts) {
        const episodes = parts.flatMap(({ groups, first }) =>
          groups
            .flatMap((group) => group.episodes)
            .map((episode) => ({ ...episode, group: first + episode.group })),
        );
        run.recordEpisodes(episodes);
        tellLeftOut(where, episodes);
      },
      evaluate: (model, config, index) =>
        evaluateSplits(model, config, mixSeed(config.seed, "evaluation", index), {
          ...(options.signal !== undefined && { signal: options.signal }),
          onSplit: (split, played) => tellLeftOut(`evaluation on ${split}`, played),
        }),
    });
  } catch (error) {
    finishFailed(run, error, options);
    throw error;
  } finally {
    for (const opened of owned) await opened.dispose();
  }
  run.finish("done", summary === undefined ? {} : { summary });
}

/** Whether something that happens every `every` updates, and at the end, is due now; 0 is never. */
export function isDue(every: number, done: number, all: number): boolean {
  return every > 0 && (done % every === 0 || done === all);
}

/** Saves the state of training: all parts into one folder. */
export async function checkpointRun(
  { folder }: Run,
  state: CheckpointState,
  parts: readonly ({ save(folder: string): Promise<void> } | undefined)[],
): Promise<void> {
  await saveCheckpoint(folder, state, async (into) => {
    for (const part of parts) await part?.save(into);
  });
}

/**
 * Loads the weights to train: the start's as its reference if needed, then those of the checkpoint.
 */
export async function loadWeights(
  engine: Engine,
  folder: string,
  checkpoint: Checkpoint | undefined,
  { reference }: { readonly reference: boolean },
): Promise<void> {
  await engine.load(join(folder, REFERENCE));
  // The reference takes as much memory as the weights.
  if (reference) await engine.snapshotReference();
  if (checkpoint !== undefined) await engine.load(checkpoint.folder);
}

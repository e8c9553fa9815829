/**
 * The life of a training run, shared by RL, RWML and world models: started or resumed, reported on,
 * checkpointed, ended.
 *
 * Whatever cannot work is refused before a run starts. A resumed run keeps what was recorded up to
 * its checkpoint, and repeats the rest. However a run ends, its engines are disposed of and its
 * folder says how it ended.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Given, PlaceOf } from "@pawl/core/config/applies.js";
import type { SettingsTree } from "@pawl/core/config/settings-tree.js";
import { type Engine, POINTER_FILE } from "@pawl/core/engine/engine.js";
import { isDiskFull } from "@pawl/core/files/io-error.js";
import { mixSeed } from "@pawl/core/random.js";
import type { Episode, Group } from "@pawl/core/rollout/episode.js";
import { cutAlarms } from "@pawl/core/runs/alarms-file.js";
import { lostCheckpoints, lostUpdates } from "@pawl/core/runs/check-run.js";
import {
  type Checkpoint,
  type CheckpointState,
  latestCheckpoint,
  requireWhole,
  saveCheckpoint,
  tiesOf,
} from "@pawl/core/runs/checkpoints.js";
import type { MetricsLine } from "@pawl/core/runs/metrics-file.js";
import { RunError } from "@pawl/core/runs/run-error.js";
import {
  createRun,
  finishFailed,
  openRun,
  type Run,
  resumeRun,
} from "@pawl/core/runs/run-folder.js";
import { describeLeftOut, type OnActivity } from "@pawl/core/train/activity.js";
import { type EvaluatedModel, evaluateSplits } from "@pawl/core/train/evaluate.js";
import type { OptimizerOptions } from "@pawl/core/train/schedule.js";
import {
  createWatch,
  type SeenAlarm,
  StoppedByAlarm,
  type WatchOptions,
} from "@pawl/core/train/watch.js";
import type { ModelOrigin } from "@pawl/models/model-origin.js";
import { OPTIMIZER_FILE } from "@pawl/models/weights/checkpoint.js";
import { watchContext } from "./checks.js";
import type { TrainConfig } from "./config.js";
import { correctionsNotice, olderNamesNotice } from "./recorded-config.js";
import { coresNotice, refuseShorter, resumeChanges, scheduleNotice } from "./resume.js";
import { REFERENCE } from "./saved-model.js";
import { type LiveTracking, trackLive } from "./trackers/follow.js";
import type { TrackOptions } from "./trackers/options.js";

/** Where to train, and callbacks. */
export interface RunOptions {
  readonly folder: string;
  /** Resume the run that is in the folder. */
  readonly resume?: boolean;
  /** Take the folder even from a process that cannot be seen from here. */
  readonly forceUnlock?: boolean | undefined;
  /** What the settings were based on, for the record. */
  readonly recipe?: string | undefined;
  /** Where a setting was given, for errors; default: its flag. */
  readonly placeOf?: PlaceOf | undefined;
  /** Which settings the user gave; those without an effect are refused (default: all). */
  readonly given?: Given | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly onProblem?: (message: string) => void;
  readonly onMetrics?: (line: MetricsLine) => void;
  readonly onAlarm?: (alarm: SeenAlarm) => void;
  readonly onActivity?: OnActivity;
}

/** Settings that every kind of training has. */
export interface RunConfig extends SettingsTree {
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

/** Before the first checkpoint. */
export const NOTHING_DONE: CheckpointState = { updates: 0, optimizerSteps: 0 };
const ignore = (): void => undefined;

/** The checkpoint to resume from, if a run is resumed and has one; a damaged one is refused. */
export function resumedCheckpoint({ folder, resume }: RunOptions): Checkpoint | undefined {
  const checkpoint = resume === true ? latestCheckpoint(folder) : undefined;
  if (checkpoint !== undefined) {
    requireWhole(folder, checkpoint);
    requireOptimizer(checkpoint);
  }
  return checkpoint;
}

/** Without its optimiser's state a run would go on with other numbers, and without a word. */
function requireOptimizer({ folder }: Checkpoint): void {
  const files = [OPTIMIZER_FILE, POINTER_FILE];
  if (!files.some((file) => existsSync(join(folder, file))))
    throw new RunError(
      `${join(folder, OPTIMIZER_FILE)} is missing, and a fresh optimiser would give other numbers. Restore it, or remove ${folder} to resume from the checkpoint before it.`,
    );
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
  const { folder, recipe, onProblem = ignore } = options;
  if (options.resume !== true)
    return createRun(
      { folder, kind: kind.kind, seed: config.seed, config, recipe, start },
      onProblem,
    );
  const older = olderNamesNotice(folder);
  if (older !== undefined) onProblem(older);
  const corrections = correctionsNotice(folder);
  if (corrections !== undefined) onProblem(`${corrections}, from here on`);
  const state = checkpoint?.state ?? NOTHING_DONE;
  const { recorded, changed } = compareResumed(kind, config, state, options);
  const lengthOf = (one: C) => ({
    length: kind.lengthOf(one),
    steps: kind.stepsInAll(one, state),
  });
  const schedule = { optimizer: config.optimizer, unit: kind.length, step: state.optimizerSteps };
  const cores = coresNotice(folder, config);
  if (cores !== undefined) onProblem(cores);
  const notice = scheduleNotice(schedule, lengthOf(recorded), lengthOf(config));
  if (notice !== undefined) onProblem(notice);
  const lambda = changed["paw.lambda"];
  if (lambda !== undefined)
    onProblem(
      `paw.lambda: ${lambda.to} from update ${state.updates + 1} on, ${lambda.from} before`,
    );
  const seen = { metrics: new Set<number>(), episodes: new Set<number>() };
  const keep = {
    episode({ group }: Pick<Episode, "group">): boolean {
      seen.episodes.add(Math.floor(group / kind.groupsPerUpdate));
      return group < drawnGroups(kind, state);
    },
    metrics(line: MetricsLine): boolean {
      seen.metrics.add(line.update!);
      // Without a checkpoint the line before the first update is repeated too.
      return checkpoint !== undefined && line.update! < state.updates;
    },
  };
  const { forceUnlock } = options;
  const run = resumeRun(
    folder,
    { keep, updates: state.updates, config, changed, forceUnlock },
    onProblem,
  );
  cutAlarms(folder, state.updates);
  for (const what of ["metrics", "episodes"] as const) {
    const lost = kind.length === "updates" && lostUpdates(what, seen[what], state.updates);
    if (lost) onProblem(`${folder}: ${lost}; the run goes on without them`);
  }
  return run;
}

/** Refuses what cannot change or is lost; says what changes. */
export function compareResumed<C extends RunConfig>(
  kind: RunKind<C>,
  config: C,
  state: CheckpointState,
  { folder, placeOf }: RunOptions,
) {
  const recorded = kind.recorded(folder);
  const none = lostCheckpoints(openRun(folder, ignore));
  if (none !== undefined) throw new RunError(none);
  const resumption = { folder, length: kind.length, placeOf };
  const changed = resumeChanges(recorded, config, resumption);
  refuseShorter(resumption, kind.lengthOf(config), kind.lengthDone(state));
  return { recorded, changed };
}

/** Groups of episodes that were drawn when a checkpoint was written. */
export const drawnGroups = (
  { groupsPerUpdate }: Pick<RunKind<RunConfig>, "groupsPerUpdate">,
  { updates, ahead }: CheckpointState,
): number => (updates + (ahead ? 1 : 0)) * groupsPerUpdate;

/** The settings of a run's evaluations. */
type EvaluatedConfig = Pick<TrainConfig, "evaluation" | "maxTokens" | "stepLimit" | "seed">;

/** Groups that are numbered starting at `first`. */
interface NumberedGroups {
  readonly groups: readonly Group[];
  readonly first: number;
}

/** A run in progress. */
export interface RunningRun {
  readonly run: Run;
  /** Disposes of it when the run ends, however it ends. */
  own<T extends { dispose(): Promise<void> }>(opened: T): T;
  /** Records metrics and reports them, with the alarms that they raise. */
  report(line: MetricsLine): void;
  /** Ends the run if an alarm that was just raised is to end it; call it after the checkpoint. */
  stopIfAlarmed(): void;
  /** Whether such an alarm was raised, so that a checkpoint is due now. */
  isStopping(): boolean;
  /**
   * Records the groups of an update, numbered through the whole run, and reports broken episodes.
   */
  recordEpisodes(where: string, ...parts: readonly NumberedGroups[]): void;
  /** Evaluates the model on every configured split, and reports broken episodes. */
  evaluate(model: EvaluatedModel, config: EvaluatedConfig, index: number): Promise<MetricsLine>;
}

/** How a run is watched while it goes on. */
export interface ConductOptions extends RunOptions {
  /** The command that resumes it. */
  readonly kind: string;
  /** Groups of episodes that an update records. */
  readonly groupsPerUpdate: number;
  readonly track: TrackOptions;
  /** Absent: nothing is an alarm. */
  readonly watch?: WatchOptions;
}

type Work = (running: RunningRun) => Promise<MetricsLine | undefined>;

/** Runs the work until its end; what the work returns is the run's summary. */
export async function conductRun(run: Run, options: ConductOptions, work: Work): Promise<void> {
  const tracking = trackLive(run.folder, options.track, options);
  try {
    await conduct(run, options, tracking, work);
  } finally {
    await tracking.end();
  }
}

async function conduct(
  run: Run,
  options: ConductOptions,
  tracking: LiveTracking,
  work: Work,
): Promise<void> {
  const watch = createWatch(run, options.watch);
  let stop: SeenAlarm | undefined;
  const record = (line: MetricsLine, raised: readonly SeenAlarm[]) => {
    run.recordMetrics(line);
    tracking.line(line);
    for (const alarm of raised) {
      tracking.alarm(alarm);
      options.onAlarm?.(alarm);
    }
    stop ??= raised.find(({ stops }) => stops);
  };
  /** The end by an alarm that an error is, or that it becomes if NaN is to stop the run. */
  const stoppedBy = (error: unknown): StoppedByAlarm | undefined => {
    if (error instanceof StoppedByAlarm) return error;
    const failed = watch.failed(error);
    if (failed === undefined) return undefined;
    record(failed.line, [failed.raised]);
    return failed.raised.stops
      ? new StoppedByAlarm(failed.raised, run.folder, options.kind)
      : undefined;
  };
  const owned: { dispose(): Promise<void> }[] = [];
  const seeContext = watchContext();
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
      report(given) {
        const { line, raised } = watch.see(given);
        record(line, raised);
        options.onMetrics?.(line);
      },
      isStopping: () => stop !== undefined,
      stopIfAlarmed() {
        if (stop !== undefined) throw new StoppedByAlarm(stop, run.folder, options.kind);
      },
      recordEpisodes(where, ...parts) {
        const episodes = parts.flatMap(({ groups, first }) =>
          groups
            .flatMap((group) => group.episodes)
            .map((episode) => ({ ...episode, group: first + episode.group })),
        );
        run.recordEpisodes(episodes);
        tracking.episodes(episodes);
        tellLeftOut(where, episodes);
        const full = seeContext(where, episodes);
        if (full !== undefined) options.onProblem?.(full);
      },
      evaluate: (model, config, index) =>
        evaluateSplits(model, config, mixSeed(config.seed, "evaluation", index), {
          ...(options.signal !== undefined && { signal: options.signal }),
          onActivity: options.onActivity,
          onSplit: (split, played) => tellLeftOut(`evaluation on ${split}`, played),
        }),
    });
  } catch (cause) {
    const ended = stoppedBy(cause);
    if (ended === undefined) {
      const error = isDiskFull(cause) ? diskFull(run.folder, cause as Error) : cause;
      finishFailed(run, error, options);
      throw error;
    }
    const { alarm, update, text } = ended.raised;
    run.finish("stopped", { stoppedBy: { alarm, update, text } });
    throw ended;
  } finally {
    for (const opened of owned) await opened.dispose();
  }
  run.finish("done", summary === undefined ? {} : { summary });
}

/** What was kept when the disk became full, and how to go on. */
function diskFull(folder: string, cause: Error): RunError {
  const { updates } = latestCheckpoint(folder)?.state ?? NOTHING_DONE;
  const kept = updates > 0 ? `Everything up to update ${updates} is kept` : "Its settings are kept";
  return new RunError(
    `${cause.message}. ${kept} in ${folder}. When there is room again, --resume ${folder} goes on from there.`,
    { cause },
  );
}

/** Whether something that happens every `every` updates, and at the end, is due now; 0 is never. */
export function isDue(every: number, done: number, all: number): boolean {
  return every > 0 && (done % every === 0 || done === all);
}

/** Saves the state of training: all parts into one folder. */
export async function checkpointRun(
  run: Run,
  state: CheckpointState,
  parts: readonly ({ save(folder: string): Promise<void> } | undefined)[],
  keep?: number,
): Promise<void> {
  const write = async (into: string): Promise<void> => {
    for (const part of parts) await part?.save(into);
    // Saving takes a while; what is renamed next belongs to whoever holds the folder.
    run.requireOwn();
  };
  run.requireOwn();
  const { folder } = run;
  await saveCheckpoint(folder, { ...state, ...tiesOf(folder) }, write, keep);
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

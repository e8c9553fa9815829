/**
 * The runs of a search for settings, as processes in a folder:
 *
 *   start/imitation=N/seed-N/run                     imitation alone, shared by the runs with that seed
 *   rate=R,imitation=N,group=N/seed-N/run            a training run, stopped early or finished
 *   rate=R,imitation=N,group=N/seed-N/evaluations.json   how it was judged
 *
 * What is there is not done again. A run that was stopped goes on from its last checkpoint.
 */
import { setMaxListeners } from "node:events";
import { join } from "node:path";
import { UserError } from "@pawl/core/errors.js";
import { hasManifest } from "@pawl/core/runs/manifest.js";
import { openRun } from "@pawl/core/runs/run-folder.js";
import type { TrainConfig } from "@pawl/training/config.js";
import { inParallel } from "./compare.js";
import { evaluateJob } from "./evaluate-job.js";
import { secondsOf } from "./finished-job.js";
import { type SplitResult, trainingFolder } from "./result-file.js";
import { timed, train } from "./run-job.js";
import type { Candidate, Outcome, Score, Trial, TuneRunner } from "./tune.js";

/** How to run a search's runs. */
export interface TuneRunsOptions {
  readonly base: TrainConfig;
  readonly out: string;
  /** The splits on which settings are chosen and judged, and how many tasks of each. */
  readonly choose: string;
  readonly judge: string;
  readonly tasks: number;
  /** Updates of a first look. */
  readonly early: number;
  /** Runs side by side, and the threads of them all. */
  readonly places: number;
  readonly threads: number;
  /** Seconds that are left. */
  readonly left: () => number;
  readonly program: string;
  readonly signal: AbortSignal;
  /** What is running now, by its name, and how far it is. */
  readonly onProgress: (running: ReadonlyMap<string, string>) => void;
  /** A run, or a part of it, has ended. */
  readonly onEnd: (name: string) => void;
}

/** A candidate's name, which its folder has, too. */
export const candidateName = ({ rate, imitation, groupSize }: Candidate): string =>
  `rate=${rate},imitation=${imitation},group=${groupSize}`;

/** The settings with a candidate's in place of theirs; an update keeps its number of episodes. */
export function tunedConfig(base: TrainConfig, candidate: Candidate): TrainConfig {
  const { rate, imitation, groupSize } = candidate;
  return {
    ...base,
    optimizer: { ...base.optimizer, learningRate: rate },
    warmStart: { ...base.warmStart, episodes: imitation },
    groups: Math.max(1, Math.round((base.groups * base.groupSize) / groupSize)),
    groupSize,
  };
}

/** What the settings have of what is searched. */
export const candidateOf = ({ optimizer, warmStart, groupSize }: TrainConfig): Candidate => ({
  rate: optimizer.learningRate,
  imitation: warmStart.episodes,
  groupSize,
});

/** Runs that are processes. */
export function tuneRuns(options: TuneRunsOptions): TuneRunner {
  const { base, out, places, threads, signal, program } = options;
  const running = new Map<string, string>();
  /** What work took here: updates, the rest of a run's process, and imitation, by one thread. */
  const took = { update: meanOf(), rest: meanOf(), episode: meanOf() };

  const folderOf = ({ candidate, seed }: Trial): string =>
    join(out, candidateName(candidate), `seed-${seed}`);
  const startFolder = ({ candidate, seed }: Trial): string =>
    join(out, "start", `imitation=${candidate.imitation}`, `seed-${seed}`);
  const nameOf = ({ candidate, seed }: Trial): string =>
    `${candidateName(candidate)}, seed ${seed}`;
  const perRun = Math.floor(threads / places);

  /** Does a piece of work that is shown by its name, unless time runs out. */
  const within = async (
    until: AbortSignal,
    name: string,
    work: (how: {
      readonly program: string;
      readonly signal: AbortSignal;
      readonly forceUnlock: false;
      readonly onProgress: (share: number, text: string) => void;
    }) => Promise<void>,
  ): Promise<void> => {
    running.set(name, "starts");
    try {
      await work({
        ...{ program, signal: until, forceUnlock: false },
        onProgress(_, text) {
          running.set(name, text);
          options.onProgress(running);
        },
      });
    } finally {
      running.delete(name);
    }
    options.onEnd(name);
  };

  const makeStart = async (trial: Trial, own: number, until: AbortSignal): Promise<void> => {
    const { imitation } = trial.candidate;
    const name = `imitation=${imitation}, seed ${trial.seed}`;
    const config = {
      ...tunedConfig(base, trial.candidate),
      ...{ updates: 0, seed: trial.seed, engine: { ...base.engine, threads: own } },
      evaluation: { ...base.evaluation, every: 0 },
    };
    const { seconds } = await timed(() =>
      within(until, name, (how) => train("train", startFolder(trial), config, how)),
    );
    took.episode.add(seconds * own, imitation);
  };

  const trainTrial = async (trial: Trial, updates: number, until: AbortSignal): Promise<void> => {
    const { candidate, seed } = trial;
    const folder = folderOf(trial);
    const before = updatesOf(folder);
    const config = {
      ...tunedConfig(base, candidate),
      seed,
      engine: { ...base.engine, threads: perRun },
      ...(candidate.imitation > 0 && {
        model: { ...base.model, start: trainingFolder(startFolder(trial)) },
        warmStart: { ...base.warmStart, episodes: 0 },
      }),
      evaluation: {
        ...base.evaluation,
        ...{ every: updates, splits: [options.choose], tasks: options.tasks },
      },
    };
    const { seconds } = await timed(() =>
      within(until, nameOf(trial), (how) =>
        train("train", folder, config, {
          ...how,
          ...(updates < base.updates && { until: updates }),
          changes: ["--evaluation.every", String(updates)],
        }),
      ),
    );
    const learning = metricsIn(folder)
      .filter(({ update = -1 }) => update >= before && update < updates)
      .reduce((sum, line) => sum + secondsOf(line), 0);
    took.update.add(learning, updates - before);
    took.rest.add(seconds - learning, 1);
  };

  /** Seconds for runs to come this far, by what others took; 0 before there were any. */
  const needed = (trials: readonly Trial[], updates: number): number => {
    const imitated = startsOf(trials).reduce((sum, { candidate }) => sum + candidate.imitation, 0);
    const each = trials.map(
      (trial) =>
        took.rest.mean() + Math.max(0, updates - updatesOf(folderOf(trial))) * took.update.mean(),
    );
    const all = each.reduce((sum, one) => sum + one, 0);
    return (imitated * took.episode.mean()) / threads + Math.max(all / places, ...each);
  };

  /** The imitation that runs share and that is not done yet, by one run of each. */
  const startsOf = (trials: readonly Trial[]): readonly Trial[] => {
    const needing = trials.filter(
      (trial) => trial.candidate.imitation > 0 && !isDone(startFolder(trial)),
    );
    return [...new Map(needing.map((trial) => [startFolder(trial), trial])).values()];
  };

  /** Does the work for each, several at a time; returns what failed, and why. */
  const workOn = async (
    trials: readonly Trial[],
    until: AbortSignal,
    work: (trial: Trial) => Promise<void>,
  ): Promise<Map<Trial, string>> => {
    const failures = new Map<Trial, string>();
    await inParallel(trials, places, async (trial) => {
      try {
        await work(trial);
      } catch (error) {
        if (until.aborted) throw error;
        failures.set(trial, (error as Error).message);
      }
    });
    return failures;
  };

  /** Trains to so many updates, unless there is less time than that and `reserve` seconds take. */
  const trainAll = async (
    trials: readonly Trial[],
    updates: number,
    reserve: number,
  ): Promise<ReadonlyMap<Trial, string> | undefined> => {
    const missing = trials.filter((trial) => !isFar(trial, updates));
    if (missing.length === 0) return new Map();
    const limit = options.left() - reserve;
    if (limit <= 0 || needed(missing, updates) > limit) return undefined;
    return inTime(limit, async (until) => {
      const starts = startsOf(missing);
      const own = Math.floor(threads / Math.min(Math.max(starts.length, 1), places));
      const unstarted = await workOn(starts, until, (trial) => makeStart(trial, own, until));
      // Imitation that fails is no fault of the rate that would follow it.
      for (const reason of unstarted.values()) throw new UserError(reason);
      return workOn(missing, until, (trial) => trainTrial(trial, updates, until));
    });
  };

  /** Does work that ends when time is up, or the user says so; undefined if time was up. */
  const inTime = async <T>(
    seconds: number,
    work: (until: AbortSignal) => Promise<T>,
  ): Promise<T | undefined> => {
    const over = AbortSignal.timeout(Math.max(0, Math.round(1000 * seconds)));
    const until = AbortSignal.any([signal, over]);
    setMaxListeners(0, until);
    try {
      return await work(until);
    } catch (error) {
      if (over.aborted && !signal.aborted) return undefined;
      throw error;
    }
  };

  /** Whether a run has come so far, and was evaluated there. */
  const isFar = (trial: Trial, updates: number): boolean =>
    updates === base.updates
      ? isDone(folderOf(trial))
      : scoreAt(folderOf(trial), updates, options.choose) !== undefined;

  const judgeTrial = async (trial: Trial, until: AbortSignal): Promise<Score> => {
    const { candidate, seed } = trial;
    const folder = folderOf(trial);
    const config = {
      ...tunedConfig(base, candidate),
      engine: { ...base.engine, threads: perRun },
      evaluation: { ...base.evaluation, splits: [options.judge] },
    };
    const size = { tasks: options.tasks, rounds: 1 };
    const asked = { folder, model: trainingFolder(folder), config, seed, size };
    let results: Readonly<Record<string, SplitResult>> = {};
    await within(until, nameOf(trial), async (how) => {
      const onSplit = (split: string) => how.onProgress(1, `is judged on ${split}`);
      results = await evaluateJob(asked, { ...how, onSplit });
    });
    return scored(results[options.judge]!);
  };

  const outcomesOf = (
    trials: readonly Trial[],
    failures: ReadonlyMap<Trial, string>,
    scoreOf: (trial: Trial) => Score | undefined,
  ): readonly Outcome[] => {
    const [first] = failures.values();
    // What all have in common is no candidate's fault.
    if (first !== undefined && failures.size === trials.length) throw new UserError(first);
    return trials.map(
      (trial) => scoreOf(trial) ?? { failed: failures.get(trial) ?? "it was not evaluated" },
    );
  };

  return {
    async train(trials, updates) {
      // A seed that judges needs two whole runs, and their evaluation.
      const judges = [trials[0]!, trials[0]!].map((trial) => ({ ...trial, seed: -1 }));
      const failures = await trainAll(trials, updates, 1.2 * needed(judges, base.updates));
      if (failures === undefined) return undefined;
      return outcomesOf(trials, failures, (trial) =>
        scoreAt(folderOf(trial), updates, options.choose),
      );
    },
    async judge(trials) {
      const untrained = await trainAll(trials, base.updates, 0);
      if (untrained === undefined) return undefined;
      const scores = new Map<Trial, Score>();
      const trained = trials.filter((trial) => !untrained.has(trial));
      const failures = await inTime(options.left(), (until) =>
        workOn(trained, until, async (trial) => {
          scores.set(trial, await judgeTrial(trial, until));
        }),
      );
      if (failures === undefined) return undefined;
      return outcomesOf(trials, new Map([...untrained, ...failures]), (one) => scores.get(one));
    },
  };
}

/** A mean that grows; 0 before there is anything. */
function meanOf() {
  let [sum, count] = [0, 0];
  return {
    add(value: number, times: number): void {
      sum += value;
      count += times;
    },
    mean: (): number => (count === 0 ? 0 : sum / count),
  };
}

const metricsIn = (folder: string) => {
  const run = trainingFolder(folder);
  return hasManifest(run) ? openRun(run, () => undefined).metrics() : [];
};

/** Updates that a run has made; none if it is not there. */
const updatesOf = (folder: string): number => (metricsIn(folder).at(-1)?.update ?? -1) + 1;

const isDone = (folder: string): boolean => {
  const run = trainingFolder(folder);
  return hasManifest(run) && openRun(run, () => undefined).manifest.status === "done";
};

/** How a run did when it was evaluated after so many updates; undefined if it was not. */
function scoreAt(folder: string, updates: number, split: string): Score | undefined {
  const line = metricsIn(folder).findLast(({ update }) => update === updates - 1);
  const success = line?.[`eval.${split}.success`];
  const episodes = line?.[`eval.${split}.episodes`];
  if (success === undefined || episodes === undefined) return undefined;
  return scored({ success, episodes });
}

const scored = ({ success, episodes }: Pick<SplitResult, "success" | "episodes">): Score => ({
  successes: Math.round(success * episodes),
  episodes,
});

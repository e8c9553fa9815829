/** Runs a comparison: its starts first, then every run, several at a time. */
import { setMaxListeners } from "node:events";
import { availableParallelism } from "node:os";
import { ConfigError } from "@pawl/core/config/config-error.js";
import { valueAt } from "@pawl/core/config/settings-tree.js";
import { checkTraining } from "@pawl/training/run.js";
import { checkAlike, type Run } from "./alike.js";
import { changesOfArm } from "./arms.js";
import { checkClaim } from "./claim.js";
import { type Job, jobsOf, startsOf } from "./matrix.js";
import type { ComparisonOptions } from "./options.js";
import { readResult, runsIn } from "./result-file.js";
import { type JobOptions, jobClaim, runJob } from "./run-job.js";
import { checkGiven, runStart, startClaim } from "./run-start.js";
import { startFolderName } from "./start-parts.js";

/** Progress of a comparison. */
export interface ComparisonProgress {
  /** Finished runs, counting fractions. */
  readonly done: number;
  readonly all: number;
  /** Work done in this call, in runs; excludes what was already finished. */
  readonly doneNow: number;
  /** What is running now, and its progress message. */
  readonly running: ReadonlyMap<string, { readonly share: number; readonly text: string }>;
}

/** Engine servers, one for each place where runs follow one another. */
export interface EngineServers {
  readonly count: number;
  /** The address of a place's server, once it listens. */
  readonly open: (place: number) => Promise<string>;
}

/** How to run a comparison, and callbacks. */
export interface CompareOptions {
  /** Absent: those of the options, or none. */
  readonly servers?: EngineServers | undefined;
  /** The script that child processes run. */
  readonly program: string;
  readonly signal: AbortSignal;
  readonly onProgress: (progress: ComparisonProgress) => void;
  /** Callback for every run that has ended. */
  readonly onEnd: (id: string, outcome: "done" | Error) => void;
}

/** More threads do not make a small model faster. */
const MOST_START_THREADS = 8;

/** Runs what is not finished yet; returns the names of the runs that failed. */
export async function compare(
  options: ComparisonOptions,
  { program, signal, onProgress, onEnd, servers = givenServers(options) }: CompareOptions,
): Promise<readonly string[]> {
  const jobs = jobsOf(options);
  const starts = startsOf(options, jobs);
  // Whatever contradicts what is there is refused before anything runs.
  const evaluation = { tasks: options.evalTasks, rounds: options.evalRounds };
  for (const start of starts) checkClaim(startClaim(start, evaluation));
  const planned = jobs.map((job) => ({ ...job, ...jobClaim(job, evaluation) }));
  for (const job of planned) checkClaim(job);
  checkArms(jobs);
  checkAlike([...[options.out, ...options.finished].flatMap(runsWithEvaluation), ...planned]);
  if (options.start !== undefined) checkGiven(starts, options.start);
  const wanted =
    options.jobs ??
    servers?.count ??
    Math.max(1, Math.floor(availableParallelism() / options.threads));
  const places = Math.min(wanted, servers?.count ?? wanted);
  // Every run listens; Node would warn of a leak at the eleventh.
  setMaxListeners(0, signal);
  const running = new Map<string, { share: number; text: string; from?: number }>();
  let done = 0;
  let doneNow = 0;
  const tell = (): void => {
    const parts = [...running.values()];
    const share = parts.reduce((sum, part) => sum + part.share, 0);
    const now = parts.reduce((sum, part) => sum + part.share - (part.from ?? part.share), 0);
    onProgress({ done: done + share, all: jobs.length, doneNow: doneNow + now, running });
  };
  const failed: string[] = [];
  const carryOut = async (
    id: string,
    counts: boolean,
    place: number,
    work: (options: JobOptions) => Promise<unknown>,
  ): Promise<void> => {
    const state: { share: number; text: string; from?: number } = { share: 0, text: "starts" };
    try {
      await work({
        program,
        signal,
        evaluation,
        forceUnlock: options.forceUnlock,
        engine:
          servers &&
          (() => {
            running.set(id, { ...state, text: "waits for its engine server" });
            tell();
            return servers.open(place);
          }),
        onProgress(share, text) {
          running.set(id, state);
          state.share = counts ? share : 0;
          state.text = text;
          // A resumed run starts with what it had done before.
          state.from ??= state.share;
          tell();
        },
      });
      // A run that was already finished has reported nothing.
      const now = running.delete(id);
      if (counts) done++;
      if (counts && now) doneNow += 1 - (state.from ?? 0);
      tell();
      if (now) onEnd(id, "done");
    } catch (error) {
      if (signal.aborted) throw error;
      failed.push(id);
      onEnd(id, error as Error);
    } finally {
      running.delete(id);
      tell();
    }
  };

  const startThreads = Math.min(
    MOST_START_THREADS,
    options.threads * Math.max(1, Math.floor(places / Math.max(starts.length, 1))),
  );
  // RWML continues from another start.
  for (const wave of [
    starts.filter(({ rwml }) => rwml === undefined),
    starts.filter(({ rwml }) => rwml !== undefined),
  ])
    await inParallel(wave, places, (start, place) =>
      carryOut(start.id, false, place, (how) =>
        runStart(start, { ...how, from: options.start, threads: startThreads }),
      ),
    );
  const startable = jobs.filter(
    ({ setting, start }) => !failed.includes(`${setting}/${startFolderName(start)}`),
  );
  await inParallel(startable, places, (job: Job, place) =>
    carryOut(job.id, true, place, (how) => runJob(job, how)),
  );
  return failed;
}

const givenServers = ({ engines }: ComparisonOptions): EngineServers | undefined =>
  engines && { count: engines.length, open: async (place) => engines[place]! };

const runsWithEvaluation = (out: string): readonly Run[] =>
  runsIn(out).map((run) => ({ ...run, evaluation: readResult(run.folder)?.evaluation }));

/** Processes a list in order, this many at a time, each in its own slot. */
export async function inParallel<T>(
  items: readonly T[],
  places: number,
  work: (item: T, place: number) => Promise<void>,
): Promise<void> {
  const queue = items.values();
  const worker = async (place: number): Promise<void> => {
    for (const item of queue) await work(item, place);
  };
  await Promise.all(Array.from({ length: places }, (_, place) => worker(place)));
}

/** Refuses arms that cannot be trained: their runs would find out only after the start. */
function checkArms(jobs: readonly Job[]): void {
  const seen = new Set<string>();
  for (const { setting, arm, folder, config } of jobs) {
    const name = `${setting}/${arm}`;
    // Seeds differ in nothing that is checked; what is finished stays, whatever is missing by now.
    if (seen.has(name) || readResult(folder) !== undefined) continue;
    seen.add(name);
    try {
      // The base's settings are for all arms, whether or not each of them uses them.
      const own = changesOfArm(arm);
      checkTraining(config, { given: (path) => valueAt(own, path.split(".")) !== undefined });
    } catch (error) {
      if (error instanceof ConfigError) throw new ConfigError(`${name}: ${error.message}`);
      throw error;
    }
  }
}

/** Runs a comparison: warm starts first, then every run, several at a time. */
import { availableParallelism } from "node:os";
import { ConfigError } from "../config/config-error.js";
import { type Job, jobsOf, startsOf } from "./matrix.js";
import type { ComparisonOptions } from "./options.js";
import { type JobOptions, runJob, runStart } from "./run-job.js";

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

/** How to run a comparison, and callbacks. */
export interface CompareOptions {
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
  { program, signal, onProgress, onEnd }: CompareOptions,
): Promise<readonly string[]> {
  const jobs = jobsOf(options);
  const starts = startsOf(options, jobs);
  if (options.start !== undefined && starts.length > 1) {
    throw new ConfigError(
      `--start: one model cannot be the start of ${starts.length} settings (${starts.map(({ setting }) => setting).join(", ")}); name one setting`,
    );
  }
  const { engines } = options;
  const wanted =
    options.jobs ??
    engines?.length ??
    Math.max(1, Math.floor(availableParallelism() / options.threads));
  const places = Math.min(wanted, engines?.length ?? wanted);
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
    const { evalTasks, evalRounds } = options;
    const state: { share: number; text: string; from?: number } = { share: 0, text: "starts" };
    try {
      await work({
        program,
        signal,
        evalTasks,
        evalRounds,
        engine: engines?.[place],
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
  await inParallel(starts, places, (start, place) =>
    carryOut(`${start.setting}/start`, false, place, (how) =>
      runStart(start, { ...how, from: options.start, threads: startThreads }),
    ),
  );
  const startable = jobs.filter((job) => !failed.includes(`${job.setting}/start`));
  await inParallel(startable, places, (job: Job, place) =>
    carryOut(job.id, true, place, (how) => runJob(job, how)),
  );
  return failed;
}

/** Processes a list in order, this many at a time, each in its own slot. */
async function inParallel<T>(
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

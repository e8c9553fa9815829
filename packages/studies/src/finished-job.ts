/** A run of a comparison with what its metrics tell: at its end, or as it was after some updates. */
import { basename, dirname } from "node:path";
import { hasManifest } from "@pawl/core/runs/manifest.js";
import type { MetricsLine } from "@pawl/core/runs/metrics-file.js";
import { openRun } from "@pawl/core/runs/run-folder.js";
import type { Algorithm } from "./arms.js";
import {
  algorithmOf,
  type JobResult,
  readResult,
  type TaskResult,
  trainingFolder,
} from "./result-file.js";
import { type RunFacts, runFacts } from "./run-facts.js";

/** How a model did on one type of tasks; a run's own evaluation keeps success alone. */
export type TypeResult = Pick<TaskResult, "success"> & Partial<TaskResult>;

/** How a model did on one split. */
interface JobSplit extends TaskResult {
  readonly types?: Readonly<Record<string, TypeResult>>;
}

/** A run, its folder, and what its metrics tell. */
export interface FinishedJob extends Omit<JobResult, "splits">, RunFacts {
  readonly splits: Readonly<Record<string, JobSplit>>;
  readonly algorithm: Algorithm;
  readonly arm: string;
  readonly seed: number;
  readonly folder: string;
}

/** Callback for what is wrong with a run's files. */
export type OnProblem = (message: string) => void;

/** The finished run in a folder, or undefined. */
export function finishedJob(folder: string, onProblem: OnProblem): FinishedJob | undefined {
  const result = readResult(folder);
  if (result === undefined) return undefined;
  const run = trainingFolder(folder);
  // Weights may have been removed to save space; without the run's metrics there is no course.
  const lines = hasManifest(run) ? openRun(run, onProblem).metrics() : [];
  return { ...(result as FinishedJob), folder, ...runFacts(lines) };
}

/**
 * The run in `OUT/SETTING/ARM/seed-SEED` as it was after so many updates, by its own evaluation then,
 * whether or not it has ended; undefined if it was not evaluated then.
 */
export function jobAt(
  folder: string,
  updates: number,
  onProblem: OnProblem,
): FinishedJob | undefined {
  if (!hasManifest(trainingFolder(folder))) return undefined;
  const { manifest, metrics } = openRun(trainingFolder(folder), onProblem);
  const lines = metrics().filter(({ update = -1 }) => update < updates);
  const last = lines.filter(({ update = -1 }) => update === updates - 1);
  const splits = splitsOf(Object.assign({}, ...last));
  if (splits === undefined) return undefined;
  const arm = basename(dirname(folder));
  return {
    setting: basename(dirname(dirname(folder))),
    algorithm: algorithmOf(arm),
    arm,
    seed: manifest.seed,
    folder,
    splits,
    seconds: lines.reduce((sum, line) => sum + secondsOf(line), 0),
    finishedAt: manifest.finishedAt ?? manifest.createdAt,
    machine: `${manifest.cores ?? "?"} cores, Node ${manifest.versions.node}`,
    ...runFacts(lines),
  };
}

/** Whether two are copies of one run, and not two runs of the same arm and seed. */
export function isSameRun(a: FinishedJob, b: FinishedJob): boolean {
  if (a.finishedAt === b.finishedAt) return true;
  const [one, other] = [a, b].map(({ folder }) => {
    const run = trainingFolder(folder);
    return hasManifest(run) ? openRun(run, () => undefined).manifest.createdAt : undefined;
  });
  return one !== undefined && one === other;
}

/** The seconds of an update. */
export const secondsOf = (line: MetricsLine): number =>
  Object.entries(line).reduce(
    (sum, [name, value]) => (name.startsWith("seconds.") ? sum + value : sum),
    0,
  );

/** What `eval.SPLIT.WHAT` and `eval.SPLIT.success.TYPE` say; undefined if nothing was evaluated. */
function splitsOf(line: MetricsLine): Record<string, JobSplit> | undefined {
  const names = Object.keys(line).flatMap((name) => /^eval\.(.+)\.success$/.exec(name)?.[1] ?? []);
  if (names.length === 0) return undefined;
  return Object.fromEntries(
    names.map((split): [string, JobSplit] => {
      const of = (what: string): number | undefined => line[`eval.${split}.${what}`];
      const optional = ["invalid", "steps", "score", "return"] as const;
      const prefix = `eval.${split}.success.`;
      const types = Object.entries(line).flatMap(([name, success]) =>
        name.startsWith(prefix) ? [[name.slice(prefix.length), { success }] as const] : [],
      );
      return [
        split,
        {
          success: of("success")!,
          episodes: of("episodes") ?? 0,
          broken: of("broken") ?? 0,
          ...Object.fromEntries(
            optional.flatMap((what) => (of(what) === undefined ? [] : [[what, of(what)]])),
          ),
          ...(types.length > 0 && { types: Object.fromEntries(types) }),
        },
      ];
    }),
  );
}

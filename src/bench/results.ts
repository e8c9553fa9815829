/** The results of a comparison: every finished run in one or several folders, aggregated by arm. */
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { UserError } from "../errors.js";
import { openRun } from "../runs/run-folder.js";
import { packageVersion } from "../version.js";
import { referenceOf } from "./matrix.js";
import { type JobResult, readResult, trainingFolder } from "./run-job.js";
import { type Estimate, estimate, pairedDifference } from "./statistics.js";

/** A finished run and its folder. */
export interface FinishedJob extends Required<JobResult> {
  readonly folder: string;
}

/** An arm's success on one split. */
export interface ArmOnSplit extends Estimate {
  /**
   * Difference to the arm without world modelling, over the seeds that both have; absent for that
   * arm.
   */
  readonly difference?: Estimate;
  /** Number of evaluated episodes over all seeds. */
  readonly episodes: number;
}

/** An arm in one setting. */
export interface ArmResult {
  readonly setting: string;
  readonly arm: string;
  readonly seeds: readonly number[];
  readonly splits: Readonly<Record<string, ArmOnSplit>>;
  /** Mean success at the evaluations during training, by split and number of updates. */
  readonly course: Readonly<Record<string, Readonly<Record<number, number>>>>;
}

/** The contents of `results.json`. */
export interface ComparisonResults {
  readonly version: string;
  readonly collectedAt: string;
  readonly command: string;
  readonly machines: readonly string[];
  /** Total seconds of all runs. */
  readonly seconds: number;
  readonly starts: readonly JobResult[];
  readonly arms: readonly ArmResult[];
  readonly runs: readonly FinishedJob[];
}

/**
 * Finds all finished runs in these folders; a run that is in two folders must not be counted twice.
 */
export function findResults(folders: readonly string[]): {
  readonly jobs: readonly FinishedJob[];
  readonly starts: readonly JobResult[];
} {
  const jobs = new Map<string, FinishedJob>();
  const starts = new Map<string, JobResult>();
  for (const out of folders) {
    if (!existsSync(out))
      throw new UserError(`${out} does not exist: expected an --out of pawl bench paw`);
    for (const setting of subfolders(out)) {
      const start = readResult(join(out, setting, "start"));
      if (start !== undefined && !starts.has(setting)) starts.set(setting, start);
      for (const arm of subfolders(join(out, setting))) {
        for (const name of subfolders(join(out, setting, arm)).filter((n) =>
          n.startsWith("seed-"),
        )) {
          const folder = join(out, setting, arm, name);
          const result = readResult(folder);
          if (result === undefined) continue;
          const key = join(setting, arm, name);
          if (!jobs.has(key)) jobs.set(key, { ...(result as Required<JobResult>), folder });
        }
      }
    }
  }
  return { jobs: [...jobs.values()], starts: [...starts.values()] };
}

/** Aggregates finished runs by setting and arm, arms without world modelling first. */
export function sumUp(
  { jobs, starts }: ReturnType<typeof findResults>,
  command: string,
): ComparisonResults {
  const isReference = (job: FinishedJob): boolean => referenceOf(job) === undefined;
  const order = [...jobs].sort(
    (a, b) =>
      a.algorithm.localeCompare(b.algorithm) || Number(isReference(b)) - Number(isReference(a)),
  );
  const byArm = new Map<string, FinishedJob[]>();
  for (const job of order) {
    const key = `${job.setting}/${job.arm}`;
    byArm.set(key, [...(byArm.get(key) ?? []), job]);
  }
  const settings = [...new Set(jobs.map((job) => job.setting))];
  const arms = settings.flatMap((setting) =>
    [...byArm.values()]
      .filter(([first]) => first!.setting === setting)
      .map((members) => {
        const reference = referenceOf(members[0]!);
        return armResult(
          members,
          reference === undefined ? [] : (byArm.get(`${setting}/${reference}`) ?? []),
        );
      }),
  );
  return {
    version: packageVersion(),
    collectedAt: new Date().toISOString(),
    command,
    machines: [...new Set([...starts, ...jobs].map(({ machine }) => machine))],
    seconds: [...starts, ...jobs].reduce((sum, { seconds }) => sum + seconds, 0),
    starts,
    arms,
    runs: jobs,
  };
}

function armResult(members: readonly FinishedJob[], reference: readonly FinishedJob[]): ArmResult {
  const { setting, arm } = members[0]!;
  const successes = (jobs: readonly FinishedJob[], split: string) =>
    new Map(
      jobs.flatMap(({ seed, splits }) => (splits[split] ? [[seed, splits[split].success]] : [])),
    );
  const names = Object.keys(members[0]!.splits);
  return {
    setting,
    arm,
    seeds: members.map(({ seed }) => seed).sort((a, b) => a - b),
    splits: Object.fromEntries(
      names.map((split) => {
        const own = successes(members, split);
        const difference = pairedDifference(own, successes(reference, split));
        const episodes = members.reduce((sum, job) => sum + (job.splits[split]?.episodes ?? 0), 0);
        return [
          split,
          {
            ...estimate([...own.values()]),
            episodes,
            ...(difference !== undefined && { difference }),
          },
        ];
      }),
    ),
    course: Object.fromEntries(names.map((split) => [split, courseOf(members, split)])),
  };
}

function courseOf(members: readonly FinishedJob[], split: string): Record<number, number> {
  const values = new Map<number, number[]>();
  for (const { folder } of members) {
    for (const line of openRun(trainingFolder(folder), () => undefined).metrics()) {
      const success = line[`eval.${split}.success`];
      if (success === undefined) continue;
      const updates = (line.update ?? -1) + 1;
      values.set(updates, [...(values.get(updates) ?? []), success]);
    }
  }
  return Object.fromEntries([...values].map(([updates, all]) => [updates, estimate(all).mean]));
}

function subfolders(folder: string): readonly string[] {
  return readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => entry.name)
    .sort();
}

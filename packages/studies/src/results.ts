/** The results of a comparison: every finished run in one or several folders, aggregated by arm. */
import { existsSync } from "node:fs";
import { UserError } from "@pawl/core/errors.js";
import { packageVersion } from "@pawl/core/version.js";
import { checkAlike } from "./alike.js";
import {
  type FinishedJob,
  finishedJob,
  isSameRun,
  jobAt,
  type OnProblem,
  type TypeResult,
} from "./finished-job.js";
import { referenceOf } from "./matrix.js";
import { runsIn } from "./result-file.js";
import { type BeginAndEnd, updatesTo } from "./run-facts.js";
import { checkStarts, differentStarts, type RecordedStart, startsIn } from "./starts.js";
import { type Estimate, estimate, pairedDifference } from "./statistics.js";

/** A number over seeds, and its difference to the arm without world modelling. */
export interface Compared extends Estimate {
  /** Over the seeds that both arms have; absent for the arm without world modelling. */
  readonly difference?: Estimate;
}

/** An arm on one split: its success, and what else was measured. */
export interface ArmOnSplit extends Compared {
  /** Number of evaluated episodes over all seeds. */
  readonly episodes: number;
  readonly score?: Compared;
  readonly steps?: Compared;
  /** Success by task type, and its mean over types with equal weight. */
  readonly types?: Readonly<Record<string, Compared>>;
  readonly meanOfTypes?: Compared;
  /** The same of the score. */
  readonly scoreOfTypes?: Readonly<Record<string, Compared>>;
}

/** An arm in one setting. */
export interface ArmResult {
  readonly setting: string;
  readonly arm: string;
  readonly seeds: readonly number[];
  readonly splits: Readonly<Record<string, ArmOnSplit>>;
  /** Success at the evaluations during training, by split and number of updates. */
  readonly course: Readonly<Record<string, Readonly<Record<number, Estimate>>>>;
  /** Success of the training episodes, by the last update of every tenth (`run-facts.ts`). */
  readonly training: Readonly<Record<number, Estimate>>;
  /** Updates until an evaluation reaches the goal, by split and seed; null: not reached. */
  readonly updatesToGoal: Readonly<Record<string, Readonly<Record<number, number | null>>>>;
  /** Means over seeds at the beginning and the end of training (`run-facts.ts`). */
  readonly learning: Readonly<Record<string, BeginAndEnd>>;
  /** Means over seeds of the seconds of an update, by phase. */
  readonly secondsPerUpdate: Readonly<Record<string, number>>;
  /** Means over seeds of the seconds of the whole run, by phase. */
  readonly phases: Readonly<Record<string, number>>;
  /** Largest memory of any seed. */
  readonly memory: Readonly<Record<string, number>>;
}

/** The contents of `results.json`. */
export interface ComparisonResults {
  readonly version: string;
  readonly collectedAt: string;
  readonly command: string;
  readonly machines: readonly string[];
  /** Total seconds of all runs. */
  readonly seconds: number;
  /** The success of `updatesToGoal`. */
  readonly goal: number;
  /** Runs are compared after this many updates, by their own evaluations; absent: at their end. */
  readonly at?: number;
  readonly starts: readonly RecordedStart[];
  readonly arms: readonly ArmResult[];
  readonly runs: readonly FinishedJob[];
}

/** The runs of a comparison, and the starts. */
export interface ComparedRuns {
  readonly jobs: readonly FinishedJob[];
  readonly starts: readonly RecordedStart[];
  /** The names of runs that were not evaluated after the given number of updates. */
  readonly left: readonly string[];
}

/**
 * Finds all finished runs in these folders, or, with `at`, all runs as they were after so many
 * updates. A run that is in two folders is counted once; what cannot be compared is refused.
 */
export function findResults(
  folders: readonly string[],
  onProblem: OnProblem,
  at?: number,
): ComparedRuns {
  const jobs = new Map<string, FinishedJob>();
  const starts: RecordedStart[] = [];
  const left = new Set<string>();
  for (const out of folders) {
    if (!existsSync(out))
      throw new UserError(`${out} does not exist: expected an --out of pawl bench observations`);
    starts.push(...startsIn(out));
    for (const { key, folder } of runsIn(out)) {
      const job = at === undefined ? finishedJob(folder, onProblem) : jobAt(folder, at, onProblem);
      const known = jobs.get(key);
      if (job === undefined) {
        if (at !== undefined) left.add(key);
      } else if (known === undefined) jobs.set(key, job);
      else if (!isSameRun(known, job))
        throw new UserError(
          `${known.folder} and ${job.folder} are two runs of the same arm and seed: leave one of their folders out, or give the runs different seeds`,
        );
    }
  }
  const found = [...jobs.values()];
  checkAlike(found, at);
  checkStarts(found, starts);
  return {
    jobs: found,
    starts: differentStarts(starts),
    left: [...left].filter((key) => !jobs.has(key)),
  };
}

/** Aggregates finished runs by setting and arm, arms without world modelling first. */
export function sumUp(
  { jobs, starts }: Pick<ComparedRuns, "jobs" | "starts">,
  { command, goal, at }: Pick<ComparisonResults, "command" | "goal" | "at">,
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
          goal,
        );
      }),
  );
  return {
    version: packageVersion(),
    collectedAt: new Date().toISOString(),
    command,
    machines: [...new Set([...starts, ...jobs].map(({ machine }) => machine))],
    seconds: [...starts, ...jobs].reduce((sum, { seconds }) => sum + seconds, 0),
    goal,
    ...(at !== undefined && { at }),
    starts,
    arms,
    runs: jobs,
  };
}

function armResult(
  members: readonly FinishedJob[],
  reference: readonly FinishedJob[],
  goal: number,
): ArmResult {
  const { setting, arm } = members[0]!;
  const names = Object.keys(members[0]!.splits);
  const bySeed = [...members].sort((a, b) => a.seed - b.seed);
  return {
    setting,
    arm,
    seeds: bySeed.map(({ seed }) => seed),
    splits: Object.fromEntries(
      names.map((split) => [split, onSplit(split, members, reference)] as const),
    ),
    course: Object.fromEntries(
      names.map((split) => [split, overSeeds(members.map(({ course }) => course[split] ?? {}))]),
    ),
    training: overSeeds(members.map(({ training }) => training)),
    updatesToGoal: Object.fromEntries(
      names.map((split) => [
        split,
        Object.fromEntries(
          bySeed.map(({ seed, course }) => [seed, updatesTo(course[split], goal) ?? null]),
        ),
      ]),
    ),
    learning: Object.fromEntries(
      keysOf(members.map(({ learning }) => learning)).map((name) => {
        const all = members.flatMap(({ learning }) => learning[name] ?? []);
        return [name, { begin: meanOf(all, "begin"), end: meanOf(all, "end") }];
      }),
    ),
    secondsPerUpdate: meansByKey(members.map((one) => one.secondsPerUpdate)),
    phases: meansByKey(members.map(({ phases }) => phases ?? {})),
    memory: Object.fromEntries(
      keysOf(members.map(({ memory }) => memory)).map((name) => [
        name,
        Math.max(...members.flatMap(({ memory }) => memory[name] ?? [])),
      ]),
    ),
  };
}

function onSplit(
  split: string,
  members: readonly FinishedJob[],
  reference: readonly FinishedJob[],
): ArmOnSplit {
  const types = keysOf(members.map(({ splits }) => splits[split]?.types ?? {})).sort();
  const compared = (of: (result: FinishedJob["splits"][string]) => number | undefined) => {
    const values = (jobs: readonly FinishedJob[]) =>
      new Map(
        jobs.flatMap(({ seed, splits }) => {
          const value = splits[split] && of(splits[split]);
          return value === undefined ? [] : [[seed, value] as const];
        }),
      );
    const own = values(members);
    const difference = pairedDifference(own, values(reference));
    if (own.size === 0) return undefined;
    return { ...estimate([...own.values()]), ...(difference !== undefined && { difference }) };
  };
  const ofTypes = (of: (result: TypeResult) => number | undefined) =>
    Object.fromEntries(
      types.flatMap((type) => {
        const found = compared(({ types: all }) => {
          const one = all?.[type];
          return one === undefined || one.episodes === 0 ? undefined : of(one);
        });
        return found === undefined ? [] : [[type, found]];
      }),
    );
  const score = compared((result) => result.score);
  const scoreOfTypes = ofTypes((one) => one.score);
  const steps = compared((result) => result.steps);
  const meanOfTypes = compared(({ types: all = {} }) => {
    const counted = Object.values(all).filter(({ episodes }) => episodes !== 0);
    return counted.length === 0 ? undefined : meanOf(counted, "success");
  });
  return {
    ...compared((result) => result.success)!,
    episodes: members.reduce((sum, job) => sum + (job.splits[split]?.episodes ?? 0), 0),
    ...(score !== undefined && { score }),
    ...(steps !== undefined && { steps }),
    ...(types.length > 0 && { types: ofTypes((one) => one.success) }),
    ...(meanOfTypes !== undefined && { meanOfTypes }),
    ...(Object.keys(scoreOfTypes).length > 0 && { scoreOfTypes }),
  };
}

/** Courses over seeds, moment by moment. */
function overSeeds(courses: readonly Readonly<Record<number, number>>[]): Record<number, Estimate> {
  const moments = keysOf(courses)
    .map(Number)
    .sort((a, b) => a - b);
  return Object.fromEntries(
    moments.map((moment) => [moment, estimate(courses.flatMap((course) => course[moment] ?? []))]),
  );
}

const keysOf = (records: readonly object[]): string[] => [
  ...new Set(records.flatMap((record) => Object.keys(record))),
];

function meanOf<K extends string>(all: readonly Readonly<Record<K, number>>[], key: K): number {
  return all.reduce((sum, one) => sum + one[key], 0) / all.length;
}

/** The mean of every named number over the records that have it. */
function meansByKey(records: readonly Readonly<Record<string, number>>[]): Record<string, number> {
  return Object.fromEntries(
    keysOf(records).map((key) => [key, estimate(records.flatMap((one) => one[key] ?? [])).mean]),
  );
}

/**
 * World-model data sets on disk: a folder with `train.jsonl`, `test.jsonl` (one trajectory per
 * line) and `statistics.json`. All trajectories of a task are in the same file.
 */
import { existsSync, mkdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { ConfigError } from "@pawl/core/config/config-error.js";
import { UserError } from "@pawl/core/errors.js";
import { writeFileAtomicallySync } from "@pawl/core/files/atomic-file.js";
import { readRegularText } from "@pawl/core/files/regular-file.js";
import { createRandom, mixSeed } from "@pawl/core/random.js";
import { importChat } from "./sharegpt.js";
import {
  groupBy,
  type Problems,
  readTrajectory,
  succeeded,
  type Trajectory,
} from "./trajectory.js";

/** Training and test data. */
export interface DataSet {
  readonly train: readonly Trajectory[];
  readonly test: readonly Trajectory[];
}

/** Maximum number of trajectories of each environment, by its name. */
export type Budgets = ReadonlyMap<string, number>;

/** A problem with a data set; users see its message. */
export class DataError extends UserError {
  override readonly name = "DataError";
}

/** Splits trajectories by task: about `share` of the tasks of each environment are for testing. */
export function divideByTask(
  trajectories: readonly Trajectory[],
  share: number,
  seed: number,
): DataSet {
  const isTest = ({ env, task }: Trajectory): boolean =>
    mixSeed(seed, "test", env, task) < share * 2 ** 32;
  return {
    train: trajectories.filter((one) => !isTest(one)),
    test: trajectories.filter(isTest),
  };
}

/**
 * The data without training trajectories of test tasks: when data sets that were split with
 * different seeds are combined, one may test the other's training tasks.
 */
export function keptApart(data: DataSet, problems: Problems): DataSet {
  const nameOf = ({ env, task }: Trajectory): string => `task ${task} of ${env}`;
  const tested = new Set(data.test.map(nameOf));
  const train = data.train.filter((one) => {
    const isTested = tested.has(nameOf(one));
    if (isTested) problems.add("to learn from in one data set, tested in another", nameOf(one));
    return !isTested;
  });
  return { ...data, train };
}

/** A seeded choice within the budgets; it keeps the order, and smaller budgets choose subsets. */
export function withinBudgets(
  trajectories: readonly Trajectory[],
  budgets: Budgets,
  seed: number,
): readonly Trajectory[] {
  const chosen = new Set<number>();
  const byEnv = groupBy(trajectories.keys(), (at) => trajectories[at]!.env);
  for (const [env, places] of byEnv) {
    const order = createRandom(mixSeed(seed, "budget", env)).shuffle([...places]);
    for (const at of order.slice(0, budgets.get(env) ?? order.length)) chosen.add(at);
  }
  return trajectories.filter((_, at) => chosen.has(at));
}

/** Parses budgets such as `household=2000`. */
export function parseBudgets(texts: readonly string[]): Budgets {
  return new Map(
    texts.map((text): [string, number] => {
      const [, env, count] = /^([a-z][a-z0-9-]*)=(\d+)$/.exec(text) ?? [];
      if (env === undefined) {
        throw new ConfigError(
          `--budget: expected an environment and a number, for example household=2000, got "${text}"`,
        );
      }
      return [env, Number(count)];
    }),
  );
}

/** Writes a data set with its statistics. */
export function writeDataSet(folder: string, data: DataSet): void {
  mkdirSync(folder, { recursive: true });
  for (const part of ["train", "test"] as const) {
    const lines = data[part].map((trajectory) => `${JSON.stringify(trajectory)}\n`);
    writeFileAtomicallySync(join(folder, `${part}.jsonl`), lines.join(""));
  }
  const statistics = { train: statisticsOf(data.train), test: statisticsOf(data.test) };
  writeFileAtomicallySync(
    join(folder, "statistics.json"),
    `${JSON.stringify(statistics, undefined, 2)}\n`,
  );
}

/**
 * Reads data sets and combines them: folders written by Pawl, or chat JSON. A single file has no
 * test part: all of it is for training. Tasks that any of them tests are left out of training.
 */
export function readDataSets(paths: readonly string[], problems: Problems): DataSet {
  const parts = paths.map((path) => readDataSet(path, problems));
  const data = {
    train: parts.flatMap(({ train }) => train),
    test: parts.flatMap(({ test }) => test),
  };
  if (data.train.length + data.test.length === 0) {
    throw new DataError(
      `${paths.join(", ")}: no trajectory could be read; pawl wm data makes some`,
    );
  }
  return keptApart(data, problems);
}

function readDataSet(path: string, problems: Problems): DataSet {
  if (!existsSync(path)) {
    throw new DataError(
      `${path} does not exist: expected a folder of pawl wm data, a .jsonl file of it, or chat JSON`,
    );
  }
  if (!statSync(path).isDirectory()) return { train: readFile(path, problems), test: [] };
  const files = { train: join(path, "train.jsonl"), test: join(path, "test.jsonl") };
  if (!existsSync(files.train) || !existsSync(files.test)) {
    throw new DataError(
      `${path} is not a data set: expected train.jsonl and test.jsonl in it, as pawl wm data writes them`,
    );
  }
  return { train: readFile(files.train, problems), test: readFile(files.test, problems) };
}

/** The trajectories of a file: Pawl's `.jsonl`, or chat JSON. */
function readFile(path: string, problems: Problems): readonly Trajectory[] {
  const text = readRegularText(path);
  const lines = text.split("\n");
  const first = lines.find((line) => line.trim() !== "")?.trim();
  // Pawl's files have one object per line with a goal; everything else is read as chat JSON.
  if (!path.endsWith(".jsonl") || (first !== undefined && !first.includes('"firstObservation"'))) {
    return importChat(text, path, problems);
  }
  const trajectories: Trajectory[] = [];
  for (const [at, line] of lines.entries()) {
    if (line.trim() === "") continue;
    const where = `${path}:${at + 1}`;
    let record: unknown;
    try {
      record = JSON.parse(line);
    } catch {
      problems.add("not a JSON object", where);
      continue;
    }
    const trajectory = readTrajectory(record, where, problems);
    if (trajectory !== undefined) trajectories.push(trajectory);
  }
  return trajectories;
}

/** Statistics of the trajectories of one environment. */
interface EnvStatistics {
  readonly trajectories: number;
  readonly tasks: number;
  readonly turns: number;
  readonly successes: number;
  readonly withContext: number;
  readonly meanTurns: number;
  readonly longestTurns: number;
  readonly meanResponseWords: number;
  /** Trajectories by who acted, and by task type. */
  readonly byPolicy: Readonly<Record<string, number>>;
  readonly byType: Readonly<Record<string, number>>;
}

/** Statistics by environment. */
export function statisticsOf(
  trajectories: readonly Trajectory[],
): Readonly<Record<string, EnvStatistics>> {
  const byEnv = groupBy(trajectories, ({ env }) => env);
  return Object.fromEntries([...byEnv].map(([env, some]) => [env, statistics(some)]));
}

function statistics(some: readonly Trajectory[]): EnvStatistics {
  const turns = some.reduce((sum, one) => sum + one.turns.length, 0);
  const words = some.reduce(
    (sum, one) => sum + one.turns.reduce((n, turn) => n + countWords(turn.observation), 0),
    0,
  );
  return {
    trajectories: some.length,
    tasks: new Set(some.map(({ task }) => task)).size,
    turns,
    successes: some.filter(succeeded).length,
    withContext: some.filter(({ context }) => context !== undefined).length,
    meanTurns: turns / some.length,
    longestTurns: Math.max(...some.map((one) => one.turns.length)),
    meanResponseWords: words / turns,
    byPolicy: countBy(some, ({ policy }) => policy),
    byType: countBy(some, ({ type }) => type),
  };
}

function countBy<T>(items: readonly T[], key: (item: T) => string): Record<string, number> {
  const groups = [...groupBy(items, key)].map(([name, some]) => [name, some.length] as const);
  return Object.fromEntries(groups.sort(([a], [b]) => (a < b ? -1 : 1)));
}

function countWords(text: string): number {
  return text.split(/\s+/).filter(Boolean).length;
}

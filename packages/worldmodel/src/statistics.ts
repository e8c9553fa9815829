/** Statistics of trajectories, by environment. */
import { groupBy } from "./group-by.js";
import { succeeded, type Trajectory } from "./trajectory.js";

/** Statistics of the trajectories of one environment. */
export interface EnvStatistics {
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

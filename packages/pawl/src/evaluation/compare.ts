/** Whether two evaluations differ, task by task. */
import { isDeepStrictEqual } from "node:util";
import { type Card, CardError, meanSuccess, type Outcome } from "./card.js";
import {
  bootstrapInterval,
  type Interval,
  METHODS,
  type Pairs,
  pairedInterval,
  signTest,
} from "./intervals.js";
import { canonical, shortHash } from "./task-list.js";

/** Two evaluations on the tasks that both played. */
export interface Comparison {
  readonly tasks: number;
  /** Tasks that broke in one of them, so that they count in neither. */
  readonly leftOut: number;
  /** Mean success of each, and the second minus the first. */
  readonly success: readonly [a: number, b: number];
  readonly difference: number;
  readonly interval: Interval;
  /** How the interval was computed. */
  readonly method: string;
  /** Tasks on which the second did better, and worse. */
  readonly better: number;
  readonly worse: number;
  /** Of the exact sign test; with one attempt at each task, McNemar's exact test. */
  readonly p: number;
  readonly test: string;
  readonly verdict: "better" | "worse" | "undecided";
  readonly byType: Readonly<
    Record<string, { readonly tasks: number; readonly success: readonly [number, number] }>
  >;
  /** What else differs, so that the difference may not be the player's. */
  readonly caveats: readonly string[];
}

/** A difference is called one below this. */
const LEVEL = 0.05;

/** Compares two cards of the same task list; others are refused. */
export function compareCards(a: Card, b: Card): Comparison {
  refuseOtherTasks(a, b);
  const others = new Map(b.outcomes.map((one) => [one.task, one]));
  const pairs = a.outcomes.flatMap((one) => {
    const [first, other] = [meanSuccess(one), others.get(one.task)];
    const second = other === undefined ? undefined : meanSuccess(other);
    return first === undefined || second === undefined ? [] : [{ type: one.type, first, second }];
  });
  if (pairs.length === 0)
    throw new CardError(`${a.tasks.name}: no task was played to its end in both evaluations`);
  const better = pairs.filter(({ first, second }) => second > first).length;
  const worse = pairs.filter(({ first, second }) => second < first).length;
  const success = meansOf(pairs);
  const once = [a, b].every((card) => card.outcomes.every((one) => one.success.length < 2));
  const p = signTest(better, worse);
  const direction = better > worse ? "better" : "worse";
  return {
    tasks: pairs.length,
    leftOut: a.tasks.tasks - pairs.length,
    success,
    difference: success[1] - success[0],
    interval: once
      ? pairedInterval(countPairs(pairs))
      : bootstrapInterval(pairs.map(({ first, second }) => second - first)),
    method: once ? METHODS.paired : METHODS.bootstrap,
    better,
    worse,
    p,
    test: once ? "McNemar's exact test" : "exact sign test over tasks",
    verdict: p < LEVEL ? direction : "undecided",
    byType: Object.fromEntries(
      [...new Set(pairs.map(({ type }) => type))].sort().map((type) => {
        const some = pairs.filter((pair) => pair.type === type);
        return [type, { tasks: some.length, success: meansOf(some) }];
      }),
    ),
    caveats: caveatsOf(a, b),
  };
}

interface Pair {
  readonly first: number;
  readonly second: number;
}

function meansOf(pairs: readonly Pair[]): readonly [number, number] {
  const mean = (values: readonly number[]): number =>
    values.reduce((sum, value) => sum + value, 0) / values.length;
  return [mean(pairs.map(({ first }) => first)), mean(pairs.map(({ second }) => second))];
}

/** The second is what the difference is counted for, so it comes first here. */
function countPairs(pairs: readonly Pair[]): Pairs {
  const counted = (second: number, first: number): number =>
    pairs.filter((pair) => pair.second === second && pair.first === first).length;
  return {
    both: counted(1, 1),
    first: counted(1, 0),
    second: counted(0, 1),
    neither: counted(0, 0),
  };
}

function refuseOtherTasks(a: Card, b: Card): void {
  const listOf = ({ tasks }: Card): string =>
    `${tasks.name} (${tasks.tasks} tasks, sha256 ${shortHash(tasks.sha256)}…)`;
  if (a.tasks.sha256 !== b.tasks.sha256)
    throw new CardError(
      `these evaluations cannot be compared: one is of ${listOf(a)}, the other of ${listOf(b)}. Evaluate both on the same split, with the same --tasks and environment.`,
    );
  const goals = new Map(b.outcomes.map(({ task, goal }) => [task, goal]));
  const differs = ({ task, goal }: Outcome): boolean => {
    const other = goals.get(task);
    return goal !== "" && other !== undefined && other !== "" && other !== goal;
  };
  const other = a.outcomes.find(differs);
  if (other !== undefined)
    throw new CardError(
      `these evaluations cannot be compared: task ${other.task} had another goal in each. Their data differs, or one was played with another version of the environment.`,
    );
}

/** Settings of the player itself, which is what is compared. */
const PLAYER = ["policy", "checkpoint", "engine"];

function caveatsOf(a: Card, b: Card): readonly string[] {
  const names = new Set([...Object.keys(a.protocol), ...Object.keys(b.protocol)]);
  const said = (value: unknown): string => (value === undefined ? "not set" : canonical(value));
  const protocol = [...names]
    .filter((name) => !PLAYER.includes(name))
    .filter((name) => !isDeepStrictEqual(a.protocol[name], b.protocol[name]))
    .map((name) => `${name}: ${said(a.protocol[name])} and ${said(b.protocol[name])}`);
  const [first, second] = [a.versions.pawl, b.versions.pawl];
  return [
    ...protocol,
    ...(first === second ? [] : [`version of pawl: ${said(first)} and ${said(second)}`]),
  ];
}

/**
 * A curriculum: which tasks an update draws.
 *
 * `uniform` draws from the whole split, as the paper does. `failures` draws types of tasks (families) the more often the more of
 * their episodes failed lately, because groups in which every attempt succeeds teach little:
 *
 *   r_u = 0.8·r_(u−1) + 0.2·(success of the type in update u),   weight = share of the split · (1 − r + 0.2)
 */
import type { Environment, Task } from "../envs/env.js";
import { createRandom, mixSeed } from "../random.js";
import type { Group } from "../rollout/episode.js";

/** How tasks are drawn. */
export const curricula = ["uniform", "failures"] as const;

/** The running success of each type of task that was played. */
export type TypeSuccess = Readonly<Record<string, number>>;

const DECAY = 0.8;
/** What a type that always succeeds still counts, so that it is not forgotten. */
const FLOOR = 0.2;

/** What a draw depends on. */
export interface DrawOptions {
  readonly split: string;
  readonly groups: number;
  readonly curriculum: (typeof curricula)[number];
}

/** The tasks of an update: drawn without repeats, anew for each update. */
export function drawTasks(
  environment: Environment,
  { split, groups, curriculum }: DrawOptions,
  seed: number,
  success: TypeSuccess = {},
): readonly Task[] {
  const all = environment.tasks(split);
  const random = createRandom(mixSeed(seed, "tasks"));
  const count = Math.min(groups, all.length);
  const drawn = new Set<Task>();
  if (curriculum === "uniform") {
    while (drawn.size < count) drawn.add(all[random.int(all.length)]!);
    return [...drawn];
  }
  const types = tasksByType(all);
  while (drawn.size < count) {
    const left = types.filter(({ tasks }) => tasks.some((task) => !drawn.has(task)));
    const weights = left.map(({ type, tasks }) => {
      const rate = success[type] ?? 0.5;
      return tasks.length * (1 - rate + FLOOR);
    });
    const { tasks } = left[pickWeighted(weights, random.next())]!;
    drawn.add(tasks[random.int(tasks.length)]!);
  }
  return [...drawn];
}

/** The running success after these groups; broken episodes say nothing. */
export function nextSuccess(before: TypeSuccess, groups: readonly Group[]): TypeSuccess {
  const after: Record<string, number> = { ...before };
  const types = new Set(groups.map(({ task }) => task.type));
  for (const type of types) {
    const episodes = groups
      .filter(({ task }) => task.type === type)
      .flatMap((group) => group.episodes)
      .filter(({ stop }) => stop !== "broken");
    if (episodes.length === 0) continue;
    const now = episodes.filter((episode) => episode.success).length / episodes.length;
    const old = before[type];
    after[type] = old === undefined ? now : DECAY * old + (1 - DECAY) * now;
  }
  return after;
}

function tasksByType(
  tasks: readonly Task[],
): readonly { readonly type: string; readonly tasks: readonly Task[] }[] {
  const types = new Map<string, Task[]>();
  for (const task of tasks) {
    const members = types.get(task.type);
    if (members === undefined) types.set(task.type, [task]);
    else members.push(task);
  }
  return [...types].map(([type, members]) => ({ type, tasks: members }));
}

/** The place that a uniform number in [0, 1) falls on when places have these weights. */
function pickWeighted(weights: readonly number[], uniform: number): number {
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  let left = uniform * total;
  const at = weights.findIndex((weight) => {
    left -= weight;
    return left < 0;
  });
  return at < 0 ? weights.length - 1 : at;
}

/**
 * The curriculum of a run: which tasks it draws, by what its record says of them.
 *
 *   rate    tasks are drawn whose estimated success is near this
 *   redraw  a group whose episodes all earned the same teaches nothing to an estimator that compares
 *           them; another task takes its place (dynamic sampling: Yu et al. 2025, arXiv 2503.14476,
 *           DAPO eq. 11)
 *   hints   a task whose success is below the rate begins where a teacher has done a part of it
 *           (`hints.ts`)
 *
 * The estimate of a task's success, where s of n episodes succeeded and p is the estimate of its type:
 *
 *   (s + p) / (n + 1)          s and n are halved whenever the task is played again
 *   p = (s_T + rate) / (n_T + 1)      those of its type lose a tenth with every group
 *
 * Half of the tasks are drawn from those that were played before, so that the ones at the edge of what
 * is known come back, however many there are (as Jiang et al. 2021, arXiv 2010.03934, replay levels);
 * of both halves those near the rate are likelier: by 1 − |estimate − rate| / max(rate, 1 − rate), and
 * by no less than 0.05. Nothing but the episodes of earlier updates counts, so a resumed run draws the
 * same tasks.
 */
import { z } from "zod";
import { type AdvantageOptions, usesCritic } from "../advantages/advantages.js";
import { ConfigError } from "../config/config-error.js";
import type { Environment, Task } from "../envs/env.js";
import { createRandom, mixSeed } from "../random.js";
import { type Episode, type Group, ownSteps } from "../rollout/episode.js";
import { carries, type PaceOptions } from "../rollout/pace.js";
import { drawTasks } from "./draws.js";

/** Settings of the curriculum: types, defaults, help and errors come from here. */
export const curriculumOptions = z
  .strictObject({
    rate: z
      .number()
      .gt(0)
      .lt(1)
      .optional()
      .describe("draw tasks whose estimated success rate is near this (default: all alike)"),
    redraw: z
      .int()
      .min(0)
      .default(0)
      .describe(
        "replace so many groups of an update at most, because all their episodes earned the same, by other tasks",
      ),
    hints: z
      .enum(["expert", "seeker"])
      .optional()
      .describe(
        "let this teacher take the first steps of tasks that fail, fewer as they succeed (default: none)",
      ),
  })
  .prefault({});

export type CurriculumOptions = z.output<typeof curriculumOptions>;

/** Throws if the settings ask for what cannot be compared, or counted. */
export function checkCurriculum({
  curriculum: { redraw },
  ...config
}: {
  readonly curriculum: Pick<CurriculumOptions, "redraw">;
  readonly groupSize: number;
  readonly advantage: AdvantageOptions;
  readonly rollout: PaceOptions;
}): void {
  if (redraw === 0) return;
  const not = (what: string, fix: string) =>
    new ConfigError(`curriculum.redraw ${redraw}: ${what}; ${fix}, or set curriculum.redraw to 0`);
  if (config.groupSize < 2)
    throw not("a group of one episode always earned the same", "set groupSize to 2 or more");
  if (usesCritic(config.advantage))
    throw not("ppo compares no group, so every episode teaches", "choose another advantage");
  if (carries(config.rollout))
    throw not("groups that are carried over are not complete", "let stragglers break");
}

/** Whether an update's groups can be told apart by what they earned. */
export function earnedTheSame({ episodes }: Group): boolean {
  const returns = episodes.filter(({ stop }) => stop !== "broken").map((one) => one.return);
  return returns.length > 1 && returns.every((one) => one === returns[0]);
}

/** Draws the tasks of a run, one update after another. */
export interface Curriculum {
  /** Tasks for so many groups; none of those that the update has `taken` before all others were. */
  draw(seed: number, groups: number, taken?: readonly Task[]): readonly Task[];
  /** The share of a task that is left to a teacher: how far its estimate is below the rate. */
  hint(task: Task): number;
  /** Counts the episodes of an update, once. */
  see(index: number, groups: readonly Group[]): void;
  /** The mean estimate of these groups' tasks, and of those they replaced; undefined without a rate. */
  expected(groups: readonly Group[]): number | undefined;
}

/** What is known of a task, or of a type of them. */
interface Count {
  successes: number;
  episodes: number;
}

/** A curriculum that has seen nothing yet. */
export function createCurriculum(
  environment: Environment,
  {
    split,
    curriculum: { rate },
  }: { readonly split: string; readonly curriculum: CurriculumOptions },
): Curriculum {
  const tasks = new Map<string, Count>();
  const types = new Map<string, Count>();
  let next = 0;

  const ofType = (type: string): number => {
    const { successes, episodes } = types.get(type) ?? { successes: 0, episodes: 0 };
    return (successes + rate!) / (episodes + 1);
  };
  const estimate = ({ id, type }: Pick<Task, "id" | "type">): number => {
    const { successes, episodes } = tasks.get(id) ?? { successes: 0, episodes: 0 };
    return (successes + ofType(type)) / (episodes + 1);
  };
  const weight = (task: Task): number =>
    Math.max(0.05, 1 - Math.abs(estimate(task) - rate!) / Math.max(rate!, 1 - rate!));
  const count = ({ id, type }: Pick<Task, "id" | "type">, { successes, episodes }: Count): void => {
    const add = (to: Map<string, Count>, key: string, kept: number): void => {
      const before = to.get(key) ?? { successes: 0, episodes: 0 };
      to.set(key, {
        successes: kept * before.successes + successes,
        episodes: kept * before.episodes + episodes,
      });
    };
    add(tasks, id, 1 / 2);
    add(types, type, 9 / 10);
  };

  return {
    draw(seed, groups, taken = []) {
      const all = environment.tasks(split);
      const free = all.length > taken.length + groups;
      if (rate === undefined) {
        const more = { split, groups: free ? groups + taken.length : groups };
        const isTaken = new Set(free ? taken.map(({ id }) => id) : []);
        return drawTasks(environment, more, seed)
          .filter(({ id }) => !isTaken.has(id))
          .slice(0, groups);
      }
      const random = createRandom(mixSeed(seed, "tasks"));
      const out = new Set(free ? taken.map(({ id }) => id) : []);
      const drawn: Task[] = [];
      /** One of these, those near the rate more likely. */
      const pick = (from: readonly Task[]): Task => {
        const sums: number[] = [];
        for (const task of from) sums.push((sums.at(-1) ?? 0) + weight(task));
        const at = random.next() * sums.at(-1)!;
        return from[sums.findIndex((sum) => at < sum)] ?? from.at(-1)!;
      };
      while (drawn.length < groups && all.length > 0) {
        if (out.size >= all.length) out.clear();
        const left = all.filter(({ id }) => !out.has(id));
        const known = left.filter(({ id }) => tasks.has(id));
        const fresh = left.filter(({ id }) => !tasks.has(id));
        const isKnown = random.next() < 0.5;
        const from = isKnown ? known : fresh;
        const task = pick(from.length > 0 ? from : left);
        out.add(task.id);
        drawn.push(task);
      }
      return drawn;
    },

    hint: (task) => (rate === undefined ? 0 : Math.max(0, 1 - estimate(task) / rate)),

    see(index, groups) {
      if (index < next) return;
      next = index + 1;
      if (rate === undefined) return;
      for (const { task, episodes } of groups) {
        for (const before of episodes.flatMap(({ replaced = [] }) => replaced))
          count(before, before);
        count(task, successesOf(episodes));
      }
    },

    expected(groups) {
      if (rate === undefined) return undefined;
      const drawn = groups.flatMap(({ task, episodes }) => [
        task,
        ...episodes.flatMap(({ replaced = [] }) => replaced),
      ]);
      return drawn.reduce((sum, task) => sum + estimate(task), 0) / drawn.length;
    },
  };
}

/** How many of the whole episodes succeeded. */
function successesOf(episodes: readonly Episode[]): Count {
  const whole = episodes.filter(({ stop }) => stop !== "broken");
  return {
    successes: whole.filter(({ success }) => success).length,
    episodes: whole.length,
  };
}

/** The group that takes another's place, with a note of what was played there before. */
export function replacing(before: Group, { task, episodes }: Group): Group {
  const { index, task: tried } = before;
  const tokens = before.episodes
    .flatMap(ownSteps)
    .flatMap(({ sequence }) => sequence?.spans ?? [])
    .filter(({ kind }) => kind === "action")
    .reduce((sum, { start, end }) => sum + end - start, 0);
  const { id, type } = tried;
  const earlier = before.episodes.flatMap(({ replaced = [] }) => replaced);
  const replaced = [...earlier, { id, type, ...successesOf(before.episodes), tokens }];
  return {
    ...{ index, task },
    episodes: episodes.map((episode, i) => ({
      ...episode,
      group: index,
      ...(i === 0 && { replaced }),
    })),
  };
}

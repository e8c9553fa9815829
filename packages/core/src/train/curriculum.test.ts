import { describe, expect, it } from "vitest";
import { advantageOptions } from "../advantages/advantages.js";
import type { Environment, Task } from "../envs/env.js";
import { paceOptions } from "../rollout/pace.js";
import { groupsOf } from "../update/update-testing.js";
import {
  checkCurriculum,
  createCurriculum,
  curriculumOptions,
  earnedTheSame,
  replacing,
} from "./curriculum.js";

const all = Array.from({ length: 40 }, (_, i): Task => {
  return { id: `train/${i}`, split: "train", type: i < 20 ? "easy" : "hard" };
});
const environment = { tasks: () => all } as unknown as Environment;
const opened = (given: object) =>
  createCurriculum(environment, { split: "train", curriculum: curriculumOptions.parse(given) });

/** A group of this task with so many of four episodes solved. */
function solved(task: Task, successes: number) {
  const [group] = groupsOf([Array.from({ length: 4 }, () => ({ steps: [{ action: [-1, -1] }] }))]);
  const episodes = group!.episodes.map((episode, i) => {
    const success = i < successes;
    return { ...episode, task, success, return: success ? 10 : 0 };
  });
  return { ...group!, task, episodes };
}

describe("a curriculum", () => {
  it("draws all alike by default, and nothing that the update has taken", () => {
    const { draw, expected } = opened({});
    const first = draw(3, 8);
    expect(new Set(first).size).toBe(8);
    expect(draw(3, 8)).toEqual(first);
    const more = draw(3, 8, first);
    expect(new Set([...first, ...more]).size).toBe(16);
    expect(expected([solved(all[0]!, 4)])).toBeUndefined();
  });

  it("draws tasks near the rate more often, also of those that were never played", () => {
    const curriculum = opened({ rate: 0.5 });
    for (let i = 0; i < 10; i++)
      curriculum.see(i, [solved(all[i]!, 4), solved(all[20 + i]!, i < 5 ? 2 : 0)]);
    const counts = { solved: 0, edge: 0, failed: 0, easy: 0, hard: 0 };
    for (let seed = 0; seed < 400; seed++)
      for (const task of curriculum.draw(seed, 1)) {
        const at = all.indexOf(task);
        if (at >= 30) counts.hard += 1;
        else if (at >= 25) counts.failed += 1;
        else if (at >= 20) counts.edge += 1;
        else counts[at < 10 ? "solved" : "easy"] += 1;
      }
    // Two of four at the edge: (2 + p) / 5, where p of the type is about a quarter.
    expect(counts.edge).toBeGreaterThan(2 * counts.failed);
    expect(counts.edge).toBeGreaterThan(2 * counts.solved);
    expect(counts.hard).toBeGreaterThan(counts.easy);
    expect(counts.easy).toBeGreaterThan(0);
  });

  it("goes on from the record: groups that were replaced count, an update only once", () => {
    const note = replacing(solved(all[0]!, 0), solved(all[1]!, 2));
    const one = opened({ rate: 0.5 });
    const other = opened({ rate: 0.5 });
    for (const curriculum of [one, other]) curriculum.see(0, [note]);
    other.see(0, [note]);
    expect(other.draw(9, 5)).toEqual(one.draw(9, 5));
    // Types: 2 of 8 episodes, the first four of which lost a tenth; (2 + 0.5) / (7.6 + 1).
    const p = 2.5 / 8.6;
    expect(one.expected([note])).toBeCloseTo(((2 + p) / 5 + (0 + p) / 5) / 2, 12);
  });

  it("every task is drawn before one comes twice", () => {
    expect(new Set(opened({ rate: 0.3 }).draw(1, 40)).size).toBe(40);
    expect(opened({ rate: 0.3 }).draw(1, 90)).toHaveLength(90);
  });
});

it("a replaced group leaves its task, its episodes and its tokens behind", () => {
  const group = { ...solved(all[3]!, 4), index: 5 };
  expect(earnedTheSame(group)).toBe(true);
  expect(earnedTheSame(solved(all[3]!, 1))).toBe(false);
  const twice = replacing(replacing(group, solved(all[7]!, 0)), solved(all[8]!, 1));
  expect(twice).toMatchObject({ index: 5, task: all[8] });
  expect(twice.episodes.map((episode) => [episode.group, episode.replaced?.length])).toEqual([
    [5, 2],
    [5, undefined],
    [5, undefined],
    [5, undefined],
  ]);
  expect(twice.episodes[0]!.replaced).toEqual([
    { id: "train/3", type: "easy", successes: 4, episodes: 4, tokens: 8 },
    { id: "train/7", type: "easy", successes: 0, episodes: 4, tokens: 8 },
  ]);
});

it("refuses by name what cannot be compared or counted", () => {
  const check = (changes: object) => () =>
    checkCurriculum({
      ...{ curriculum: { redraw: 2 }, groupSize: 4, rollout: paceOptions.parse({}) },
      ...{ advantage: advantageOptions().parse({ name: "grpo" }), ...changes },
    });
  expect(check({})).not.toThrow();
  expect(check({ groupSize: 1 })).toThrow(/curriculum.redraw 2: a group of one episode/);
  const ppo = advantageOptions().parse({ name: "ppo" });
  expect(check({ advantage: ppo })).toThrow(/ppo compares no group/);
  const rollout = paceOptions.parse({ pace: "own", stragglerSeconds: 1, stragglers: "carry" });
  expect(check({ rollout })).toThrow(/carried over are not complete/);
  expect(check({ rollout, curriculum: { redraw: 0 } })).not.toThrow();
});

import { expect, it } from "vitest";
import { filterOptions, holdOut, keepHard, splitTriplets } from "./filter.js";
import { episode } from "./testing.js";
import { tripletsOf } from "./triplet.js";

const triplets = tripletsOf([episode]);

it("is off by default", () => {
  expect(filterOptions.parse({})).toMatchObject({ share: 0, keep: 0.1 });
});

it("keeps what is hard, and easy triplets with a probability", () => {
  const rewards = [0.95, 0.9, 0.89];
  const kept = (keep: number) => keepHard(triplets, rewards, { keep, easyReward: 0.9 }, 1);
  expect(kept(0)).toEqual({ kept: [triplets[2]], easy: 2, hard: 1 });
  expect(kept(1)).toEqual({ kept: triplets, easy: 2, hard: 1 });
});

it("splits off a share, and both parts keep their order", () => {
  const [drawn, rest] = splitTriplets(triplets, 0.34, 3);
  expect([drawn.length, rest.length]).toEqual([1, 2]);
  expect([...drawn, ...rest].sort((a, b) => a.step - b.step)).toEqual(triplets);
  expect(rest[0]!.step).toBeLessThan(rest[1]!.step);
});

it("holds out whole tasks: none of their episodes is left for training", () => {
  // Ten tasks with three episodes each, as in a recorded run of groups.
  const episodes = Array.from({ length: 30 }, (_, i) => ({
    ...episode,
    task: { ...episode.task, id: `train/${i % 10}` },
    group: i,
  }));
  const held = holdOut(episodes, 0.25, 1);
  expect(held.size).toBe(9);
  const tasks = new Set([...held].map(({ task }) => task.id));
  expect(tasks.size).toBe(3);
  expect(episodes.filter((one) => !held.has(one) && tasks.has(one.task.id))).toEqual([]);
  expect(holdOut(episodes, 0.25, 1)).toEqual(held);
  expect(holdOut(episodes, 0.25, 2)).not.toEqual(held);
});

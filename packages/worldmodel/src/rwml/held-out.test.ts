import { expect, it } from "vitest";
import { holdOut } from "./held-out.js";
import { episode } from "./testing.js";

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

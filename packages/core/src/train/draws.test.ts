import { expect, it } from "vitest";
import { openEnvironment } from "../envs/open.js";
import { chooseTasks } from "../rollout/config.js";
import { drawTasks } from "./draws.js";

const environment = openEnvironment({ name: "household", rooms: 1, receptacles: 4, objects: 3 });
const three = { ...environment, tasks: () => environment.tasks("train").slice(0, 3) };
const idsOf = (tasks: readonly { readonly id: string }[]): readonly string[] =>
  tasks.map(({ id }) => id);

it.each([
  ["an update", (groups: number) => drawTasks(three, { split: "train", groups }, 5)],
  [
    "a rollout",
    (groups: number) => chooseTasks(three, { split: "train", groups, seed: 5, tasks: undefined }),
  ],
])("%s has as many groups as asked for, and repeats no task before all were drawn", (_, draw) => {
  const all = idsOf(three.tasks()).toSorted();
  const eight = idsOf(draw(8));
  expect(eight).toHaveLength(8);
  expect(eight.slice(0, 3).toSorted()).toEqual(all);
  expect(eight.slice(3, 6).toSorted()).toEqual(all);
  expect(new Set(eight.slice(6)).size).toBe(2);
  // Fewer are the first of them.
  expect(idsOf(draw(2))).toEqual(eight.slice(0, 2));
  expect(draw(3)).toHaveLength(3);
});

it("a split without tasks has none to draw", () => {
  const none = { ...environment, tasks: () => [] };
  expect(drawTasks(none, { split: "train", groups: 2 }, 5)).toEqual([]);
  expect(chooseTasks(none, { split: "train", groups: 2, seed: 5, tasks: undefined })).toEqual([]);
});

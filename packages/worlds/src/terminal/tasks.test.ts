import { describe, expect, it } from "vitest";
import { madeTasks, taskKinds } from "./tasks.js";

const SPLITS = ["train", "valid", "test"];

const made = (seed: number, difficulty: number) =>
  madeTasks({ seed, difficulty, kinds: taskKinds });

describe("made-up tasks", () => {
  it("have families that no other split has", () => {
    const source = made(0, 1);
    const families = SPLITS.map((split) => new Set(source.lists[split]!().map(({ type }) => type)));
    const all = families.flatMap((set) => [...set]);
    expect(new Set(all).size).toBe(all.length);
    for (const set of families) expect(set.size).toBeGreaterThan(4);
  });

  it("follow from the seed", () => {
    const task = made(0, 1).lists.train!()[5]!;
    expect(made(3, 2).load(task)).toEqual(made(3, 2).load(task));
    expect(made(4, 2).load(task)).not.toEqual(made(3, 2).load(task));
  });

  it("are thousands, and no two are the same", () => {
    const source = made(0, 3);
    const tasks = source.lists.train!().slice(0, 4000).map(source.load);
    expect(new Set(tasks.map(({ test }) => test)).size).toBe(tasks.length);
  });
});

import { some } from "@pawl/core/dose-testing.js";
import { describe, expect, it } from "vitest";
import { hasBash, solveInBash } from "./bash-testing.js";
import { madeTasks } from "./tasks.js";

const LEVELS = [1, 2, 3];
const SPLITS = ["train", "valid", "test"];

/** One task of every family, at this difficulty. */
function oneOfEach(difficulty: number) {
  const source = madeTasks(7, difficulty);
  return SPLITS.flatMap((split) => {
    const tasks = source.lists[split]!();
    const families = [...new Set(tasks.map(({ type }) => type))];
    return families.map((family, n) => {
      const all = tasks.filter(({ type }) => type === family);
      return source.load(all[n % all.length]!);
    });
  });
}

describe("made-up tasks", () => {
  it("have families that no other split has", () => {
    const source = madeTasks(0, 1);
    const families = SPLITS.map((split) => new Set(source.lists[split]!().map(({ type }) => type)));
    const all = families.flatMap((set) => [...set]);
    expect(new Set(all).size).toBe(all.length);
    for (const set of families) expect(set.size).toBeGreaterThan(4);
  });

  it("follow from the seed", () => {
    const task = { id: "train/5", split: "train", type: madeTasks(0, 1).lists.train!()[5]!.type };
    expect(madeTasks(3, 2).load(task)).toEqual(madeTasks(3, 2).load(task));
    expect(madeTasks(4, 2).load(task)).not.toEqual(madeTasks(3, 2).load(task));
  });

  it.skipIf(!hasBash).each(LEVELS)(
    "of level %i are solved by their solutions alone, in bash",
    (level) => {
      for (const task of some(oneOfEach(level))) {
        const { before, after } = solveInBash(task);
        const told = `${task.family}: ${task.instruction}\n${task.solution.join("\n")}\n${task.test}`;
        expect(before.success, told).toBe(false);
        expect(before.reward, told).toBeLessThan(1);
        expect(after, told).toEqual({ success: true, reward: 1 });
      }
    },
  );
});

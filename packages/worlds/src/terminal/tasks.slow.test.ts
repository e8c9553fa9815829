import { some } from "@pawl/core/dose-testing.js";
import { describe, expect, it } from "vitest";
import { hasBash, solveInBash } from "./bash-testing.js";
import { madeTasks, taskKinds } from "./tasks.js";

/** One task of every family, at this difficulty. */
function oneOfEach(difficulty: number) {
  const source = madeTasks({ seed: 7, difficulty, kinds: taskKinds });
  return Object.values(source.lists).flatMap((list) => {
    const byFamily = new Map(list().map((task) => [task.type, task]));
    return [...byFamily.values()].map(source.load);
  });
}

describe("made-up tasks in bash", () => {
  it.skipIf(!hasBash).each([1, 2, 3])(
    "of level %i are solved by their solutions alone",
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

import { dose } from "@pawl/core/dose-testing.js";
import { expect, it } from "vitest";
import { runCommand } from "./shell/session.js";
import { madeTasks, taskKinds } from "./tasks.js";
import { scoreTask, startTask } from "./tasks-session.js";

it.each([1, 2, 3])(
  "made-up tasks of level %i are solved here by their solutions alone",
  (difficulty) => {
    const source = madeTasks({ seed: 7, difficulty, kinds: taskKinds });
    for (const list of Object.values(source.lists))
      for (const task of list().slice(0, dose(200)).map(source.load)) {
        let session = startTask(task, 1);
        const told = `${task.family}: ${task.instruction}\n${task.solution.join("\n")}\n${task.test}`;
        expect(scoreTask(task, session).success, told).toBe(false);
        for (const command of task.solution) session = runCommand(session, command).session;
        expect(scoreTask(task, session), told).toEqual({ success: true, reward: 1 });
      }
  },
);

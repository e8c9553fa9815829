/** The environment `tasks`: questions from files, judged by a named reward. */

import type { EnvKind } from "@pawl/core/envs/env.js";
import { z } from "zod";
import { rewardNames, rewardOf } from "./rewards.js";
import { openTasks } from "./task-env.js";

const optionsNow = () =>
  z.strictObject({
    train: z
      .string()
      .describe("tasks to train on, a .jsonl file: a goal per line, and what the reward needs"),
    valid: z.string().optional().describe("tasks to evaluate on, in the same form"),
    reward: z
      .enum(rewardNames())
      .default("exact")
      .describe(
        "what earns 1: the task's answer (exact), or a match of its pattern (plugins add others)",
      ),
    maxReward: z.number().gt(0).default(1).describe("the largest reward"),
  });

/** One answer per task. */
export const tasks: EnvKind<ReturnType<typeof optionsNow>> = {
  name: "tasks",
  privileged: true,
  summary: "your own questions from a file, each answered once and judged by a reward function",
  // Plugins add rewards after this file is loaded.
  get options() {
    return optionsNow();
  },
  open: ({ train, valid, reward, maxReward }) =>
    openTasks({
      name: "tasks",
      splits: { train, ...(valid !== undefined && { valid }) },
      reward: rewardOf(reward),
      maxReturn: maxReward,
      // Who knows the answers can teach them.
      ...(reward === "exact" && { expert: (task) => String(task.answer) }),
    }),
};

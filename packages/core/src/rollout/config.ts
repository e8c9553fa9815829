/** The configuration of a rollout, and its tasks. */
import { z } from "zod";
import type { Environment, EnvKind, Task } from "../envs/env.js";
import { envConfig } from "../envs/registry.js";
import { createRandom } from "../random.js";
import { promptOptions } from "../text/prompt.js";
import { policyConfig } from "./policies/config.js";

/** The schema of a rollout in this kind of environment. */
export function rolloutConfig(kind: EnvKind) {
  return z
    .strictObject({
      env: envConfig(kind).prefault({}),
      split: z.string().default("train").describe("split to take tasks from"),
      groups: z
        .int()
        .min(1)
        .optional()
        .describe(
          "number of groups of episodes, each of another task until all were played (default: 16)",
        ),
      tasks: z
        .array(z.string())
        .min(1)
        .optional()
        .describe("play these tasks instead, by id, such as train/0,train/17"),
      groupSize: z.int().min(1).default(8).describe("episodes per task"),
      policy: policyConfig().optional(),
      prompt: promptOptions().prefault({}),
      stepLimit: z
        .int()
        .min(1)
        .optional()
        .describe("maximum steps per episode (default: the environment's limit)"),
      concurrency: z
        .int()
        .min(1)
        .optional()
        .describe("episodes played concurrently (default: 1; policy.concurrency for chat models)"),
      seed: z.int().min(0).default(0).describe("random seed for task selection and sampling"),
    })
    .refine((config) => config.tasks === undefined || config.groups === undefined, {
      path: ["groups"],
      message: "contradicts tasks: give either a number of groups or a list of tasks",
    });
}

/** The settings of a rollout. */
export type RolloutConfig = z.output<ReturnType<typeof rolloutConfig>>;

const DEFAULT_GROUPS = 16;

/**
 * The tasks of a rollout: the listed ones, or a seeded choice from the split, in which none is
 * repeated before all were chosen.
 */
export function chooseTasks(
  environment: Environment,
  config: Pick<RolloutConfig, "tasks" | "groups" | "split" | "seed">,
): readonly Task[] {
  if (config.tasks !== undefined) return config.tasks.map((id) => environment.task(id));
  const all = environment.tasks(config.split);
  const order = createRandom(config.seed).shuffle(all.map((_, index) => index));
  const count = all.length === 0 ? 0 : (config.groups ?? DEFAULT_GROUPS);
  return Array.from({ length: count }, (_, i) => all[order[i % order.length]!]!);
}

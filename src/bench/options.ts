/** Settings of the comparison of ways to learn from observations. */
import { availableParallelism } from "node:os";
import { z } from "zod";
import type { EnvKind } from "../envs/env.js";
import { rwmlConfig } from "../rwml/config.js";
import { trainConfig } from "../train/config.js";
import { forceUnlockSetting } from "../train/resume.js";
import { algorithms } from "./arms.js";

const count = z.int().min(1);

/** The schema of `pawl bench observations` in this kind of environment. */
export function comparisonOptions(kind: EnvKind) {
  return z.strictObject({
    settings: z
      .array(z.string())
      .min(1)
      .default(["default"])
      .describe("settings to compare in, each with one warm start for all its arms"),
    algorithms: z
      .array(z.enum(algorithms()))
      .min(1)
      .default(["grpo"])
      .describe(`estimators (${algorithms().join(", ")}), each with every arm`),
    arms: z
      .array(z.string())
      .min(1)
      .default(["plain", "paw", "fixed", "ce"])
      .describe("arms to compare; plain is the baseline"),
    seeds: z
      .array(z.int().min(0))
      .min(1)
      .default([0, 1, 2, 3, 4])
      .describe("random seeds for every arm; more can be added later"),
    evalTasks: count.default(1000).describe("maximum tasks per split in the final evaluation"),
    evalRounds: count.default(1).describe("attempts per task in the final evaluation"),
    start: z
      .string()
      .optional()
      .describe("start from this run or model folder instead of a warm start (one setting only)"),
    jobs: count.optional().describe("concurrent runs (default: as many as the cores allow)"),
    engines: z
      .array(z.url({ protocol: /^https?$/ }))
      .min(1)
      .optional()
      .describe("engine servers that share a checkpoint folder, one run each at a time"),
    threads: count
      .default(Math.min(2, availableParallelism()))
      .describe("CPU threads per run; compare only results with the same number"),
    only: z
      .array(z.string())
      .optional()
      .describe("run only these: SETTING/ARM/SEED or ARM/SEED, such as grpo+paw/3"),
    finished: z
      .array(z.string())
      .default([])
      .describe("other --out folders whose finished runs count and are not repeated"),
    part: z
      .string()
      .regex(/^\d+\/\d+$/, "expected PART/PARTS, such as 1/4")
      .optional()
      .describe("run only one part, such as 1/4, to split the work across machines"),
    goal: z
      .number()
      .gt(0)
      .max(1)
      .default(0.6)
      .describe("success for sample efficiency: the updates until an evaluation reaches it"),
    at: count
      .optional()
      .describe("with FOLDERs: compare runs after this many updates, by their own evaluation then"),
    out: z.string().default("runs/observations").describe("output folder for runs and results"),
    forceUnlock: forceUnlockSetting,
    // What the warm start and the runs say too is theirs.
    rwml: rwmlConfig(kind)
      .omit({
        env: true,
        prompt: true,
        model: true,
        engine: true,
        split: true,
        stepLimit: true,
        maxTokens: true,
        evaluation: true,
        seed: true,
      })
      .prefault({}),
    train: trainConfig(kind).prefault({}),
  });
}

/** Settings of the comparison. */
export type ComparisonOptions = z.output<ReturnType<typeof comparisonOptions>>;

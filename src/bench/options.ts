/** Settings of the comparison with and without world modelling. */
import { availableParallelism } from "node:os";
import { z } from "zod";
import type { EnvKind } from "../envs/env.js";
import { trainConfig } from "../train/config.js";
import { algorithms } from "./arms.js";

const count = z.int().min(1);

/** The schema of `pawl bench paw` in an environment of this kind. */
export function comparisonOptions(kind: EnvKind) {
  return z.strictObject({
    settings: z
      .array(z.string())
      .min(1)
      .default(["default"])
      .describe("where to compare; each has one warm start that all its arms begin with"),
    algorithms: z
      .array(z.enum(algorithms))
      .min(1)
      .default(["grpo"])
      .describe(`${algorithms.join(", ")}: each with every arm`),
    arms: z
      .array(z.string())
      .min(1)
      .default(["plain", "paw", "fixed", "ce"])
      .describe("what to compare; plain is what the others are measured against"),
    seeds: z
      .array(z.int().min(0))
      .min(1)
      .default([0, 1, 2, 3, 4])
      .describe("every arm is trained with each of them"),
    evalTasks: count.default(1000).describe("tasks of each split in the final evaluation"),
    evalRounds: count.default(1).describe("how often each of those tasks is tried"),
    start: z
      .string()
      .optional()
      .describe("begin with this run or model in place of a warm start; one setting only"),
    jobs: count.optional().describe("runs side by side; default: as many as cores allow"),
    engines: z
      .array(z.url({ protocol: /^https?$/ }))
      .min(1)
      .optional()
      .describe("engine servers with one checkpoint folder, each for one run at a time"),
    threads: count
      .default(Math.min(2, availableParallelism()))
      .describe("threads of each run; numbers are comparable at the same number only"),
    only: z
      .array(z.string())
      .optional()
      .describe("run these alone: SETTING/ARM/SEED or ARM/SEED, as in grpo+paw/3"),
    part: z
      .string()
      .regex(/^\d+\/\d+$/, "expected PART/PARTS, as in 1/4")
      .optional()
      .describe("run one of several parts alone, as in 1/4, to share the work among machines"),
    out: z.string().default("runs/bench-paw").describe("where runs and results go"),
    train: trainConfig(kind).prefault({}),
  });
}

/** Settings of the comparison. */
export type ComparisonOptions = z.output<ReturnType<typeof comparisonOptions>>;

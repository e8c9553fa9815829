/** The settings of alarms. */
import { z } from "zod";

const factor = z
  .number()
  .refine((value) => value === 0 || value > 1, { message: "expected 0 (never) or more than 1" });
const fraction = z.number().min(0).lt(1);

/** When each alarm is raised; 0 turns one off. */
export const alarmOptions = z
  .strictObject({
    window: z
      .int()
      .min(1)
      .default(5)
      .describe("updates that an alarm looks at together, so that one odd update raises none"),
    entropy: fraction
      .default(0.05)
      .describe(
        "alarm if action entropy falls below this fraction of its highest while under 90 % succeed (0: never)",
      ),
    kl: factor
      .default(10)
      .describe("alarm if policy.kl is this many times what it was before (0: never)"),
    mismatch: factor
      .default(10)
      .describe("alarm if mismatch.mean grows to this many times its lowest (0: never)"),
    groups: z
      .int()
      .min(0)
      .default(3)
      .describe(
        "alarm after this many updates in a row without any group to learn from (0: never)",
      ),
    reward: fraction
      .default(0.1)
      .describe("alarm if rewards fall below this fraction of their best (0: never)"),
    stall: z
      .int()
      .min(0)
      .default(0)
      .describe("alarm after this many updates without better rewards (0: never)"),
  })
  .prefault({});

/** The settings of alarms. */
export type AlarmOptions = z.output<typeof alarmOptions>;

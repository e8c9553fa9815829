/** The settings of an update's rollouts: who waits for whom. */
import { z } from "zod";
import { ConfigError } from "../config/config-error.js";

const DEFAULT_ROWS = 256;

/** Settings of the pace: types, defaults, help and errors come from here. */
export const paceOptions = z
  .strictObject({
    pace: z
      .enum(["together", "own"])
      .default("together")
      .describe(
        "together: episodes advance step by step, in the same batches each time; own: each goes on when its world has answered",
      ),
    rows: z
      .int()
      .min(1)
      .optional()
      .describe(
        `own pace: episodes sampled together at most; new ones start as long as fewer wait (default: ${DEFAULT_ROWS})`,
      ),
    stragglerSeconds: z
      .number()
      .gt(0)
      .optional()
      .describe(
        "own pace: seconds that the last tenth of an update's episodes has left (default: as long as they take)",
      ),
    stragglers: z
      .enum(["break", "carry"])
      .optional()
      .describe(
        "what happens to those then: they are broken, or carry: their groups are learnt with the next update (default: break)",
      ),
  })
  .prefault({});

/** How fast the episodes of an update advance. */
export type PaceOptions = z.output<typeof paceOptions>;

/** The number of episodes that are sampled together at most. */
export const rowsOf = ({ rows = DEFAULT_ROWS }: PaceOptions): number => rows;

/** Whether groups may be learnt by later weights than those that began to draw them. */
export const carries = ({ stragglers }: PaceOptions): boolean => stragglers === "carry";

/** Throws if a setting would have no effect. */
export function checkPace({ pace, ...others }: PaceOptions): void {
  for (const [name, value] of Object.entries(others))
    if (pace === "together" && value !== undefined)
      throw new ConfigError(
        `rollout.${name}: episodes that advance together wait for each other; set rollout.pace to own, or leave it out`,
      );
  if (others.stragglers !== undefined && others.stragglerSeconds === undefined)
    throw new ConfigError(
      `rollout.stragglers ${others.stragglers}: nobody is a straggler without rollout.stragglerSeconds; set it, or leave both out`,
    );
}

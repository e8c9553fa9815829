/** The settings of an update's rollouts: who waits for whom. */
import { z } from "zod";

const DEFAULT_ROWS = 256;

/** Settings of the pace: types, defaults, help and errors come from here. */
export const paceOptions = z
  .strictObject({
    pace: z
      .enum(["together", "own"])
      .default("together")
      .describe(
        "together: episodes advance in the same batches each step; own: each goes on when its world has answered",
      ),
    rows: z
      .int()
      .min(1)
      .optional()
      .describe(
        `episodes sampled together at most; new ones start as long as fewer wait (default: ${DEFAULT_ROWS})`,
      ),
    stragglerSeconds: z
      .number()
      .gt(0)
      .optional()
      .describe(
        "seconds that the last tenth of an update's episodes has left (default: as long as they take)",
      ),
    stragglers: z
      .enum(["break", "carry"])
      .optional()
      .describe(
        "what happens to them then: broken, or their groups learnt with the next update (default: break)",
      ),
  })
  .prefault({});

/** How fast the episodes of an update advance. */
export type PaceOptions = z.output<typeof paceOptions>;

/** The number of episodes that are sampled together at most. */
export const rowsOf = ({ rows = DEFAULT_ROWS }: PaceOptions): number => rows;

/** Whether groups may be learnt by later weights than those that began to draw them. */
export const carries = ({ stragglers }: PaceOptions): boolean => stragglers === "carry";

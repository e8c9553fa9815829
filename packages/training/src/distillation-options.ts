/** The settings of on-policy distillation. */
import { address } from "@pawl/core/trust/reach.js";
import { KEY_VARIABLES } from "@pawl/engine-remote/remote/remote-engine.js";
import { z } from "zod";

/** Settings of distillation while the policy acts. */
export const distillationOptions = z
  .strictObject({
    teacher: z
      .string()
      .min(1)
      .optional()
      .describe(
        "learn from what this model thinks of the policy's own tokens: a run, a model folder, a hub id, or served (the model of the teacher's engine server)",
      ),
    engine: address(z.url({ protocol: /^https?$/ }), ...KEY_VARIABLES)
      .optional()
      .describe("URL of an engine server for the teacher (default: the policy's engine)"),
    weight: z
      .number()
      .gt(0)
      .default(1)
      .describe("β: weight of the teacher's log-probability minus the policy's in the advantage"),
    rewards: z
      .boolean()
      .default(false)
      .describe("add that to the estimator's advantage, so that returns are learnt from too"),
  })
  .prefault({});

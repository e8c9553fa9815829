/** The whole objective of an update: the policy's losses, and the world model's where PaW is on (PaW eq. 3). */
import { z } from "zod";
import { entropyObjective } from "./entropy.js";
import { type Objective, sumObjectives } from "./expression.js";
import { klObjective } from "./kl.js";
import type { PawOptions } from "./paw-options.js";
import { policyObjective } from "./policy.js";
import { valueObjective } from "./value.js";
import { worldObjective } from "./world.js";

const coefficient = z.number().min(0);

/** Settings of the policy's losses: types, defaults, help and errors come from here. */
export const objectiveOptions = z
  .strictObject({
    clipLow: z.number().min(0).max(1).default(0.2).describe("the ratio counts down to 1 − this"),
    clipHigh: z.number().min(0).default(0.2).describe("the ratio counts up to 1 + this"),
    dualClip: z
      .number()
      .gt(1)
      .default(3)
      .describe("a bad action's loss is at most this many times its advantage"),
    importanceCap: z
      .number()
      .gt(0)
      .default(2)
      .describe("with engine.sampler: tokens it drew weigh p(engine) / p(sampler), at most this"),
    kl: coefficient.default(0.01).describe("β: weight of the KL penalty to the frozen start"),
    entropy: coefficient
      .default(0.001)
      .describe("weight of the entropy bonus; above 0 it needs an engine with entropies"),
    valueClip: z.number().gt(0).default(0.5).describe("how far a value may move in one update"),
    valueCoefficient: coefficient
      .default(0.01)
      .describe("weight of the critic's loss, with ppo; with shared weights it must stay small"),
    normaliser: z
      .enum(["tokens", "paper"])
      .default("tokens")
      .describe("mean over action tokens, or over groups and their episodes (equations 1, 11)"),
  })
  .prefault({});

export type ObjectiveOptions = z.output<typeof objectiveOptions>;

/** The objective of an update. A coefficient of 0 leaves its term and its inputs out, as does no other sampler. */
export function updateObjective(
  options: ObjectiveOptions,
  paw: PawOptions,
  { critic, sampler = false }: { readonly critic: boolean; readonly sampler?: boolean },
): Objective {
  const { loss } = paw;
  return sumObjectives(
    policyObjective(options, sampler ? options : undefined),
    ...(options.kl > 0 ? [klObjective(options.kl)] : []),
    ...(options.entropy > 0 ? [entropyObjective(options.entropy)] : []),
    ...(critic ? [valueObjective(options)] : []),
    ...(loss === "off" ? [] : [worldObjective({ ...paw, loss })]),
  );
}

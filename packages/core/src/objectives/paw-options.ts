/** Settings of PaW with the paper's defaults: types, help and errors come from here. */
import { z } from "zod";
import { addPart, schemaOfParts } from "../added-parts.js";
import { checkLoss } from "./loss-plugin.js";
import type { WorldLoss } from "./world-loss.js";
import { lossSettings, worldLossNames, worldLossTitles } from "./world-losses.js";

/** Without any setting of PaW the policy alone is trained: docs/results/observations.md says why. */
export const pawOptions = schemaOfParts("worldLosses", () =>
  z
    .strictObject({
      loss: z
        .enum([...worldLossNames(), "off"])
        .default(worldLossNames()[0])
        .describe(
          `world-model loss: ${worldLossTitles().join(", ")}; off: none, as in a file without paw`,
        ),
      ...lossSettings(),
      alpha: z
        .number()
        .gt(0)
        .max(1)
        .default(0.75)
        .describe("α: fraction of transitions to predict, highest action entropy first"),
      entropy: z
        .enum(["sampled", "full"])
        .default("sampled")
        .describe(
          "estimate action entropy from the sampled tokens, or compute it over the full distribution",
        ),
      lambda: z
        .union([z.literal("adaptive"), z.number().min(0)])
        .default("adaptive")
        .describe(
          "λ: weight of the world-model loss; adaptive: 1 − mean return / maximum return of the group",
        ),
      aggregation: z
        .enum(["group-mean", "token-mean"])
        .default("group-mean")
        .describe(
          "mean of the world-model loss: over groups, then transitions, then tokens (PaW eq. 9, 11), or over all tokens",
        ),
      targets: z
        .string()
        .regex(
          /^(own|shuffled)$|\n/,
          "expected own, shuffled or texts, each with a line break at its end",
        )
        .default("own")
        .describe(
          "what to predict: own, what followed; as controls shuffled, what followed another transition, or texts, one a line",
        ),
      until: z
        .string()
        .min(1)
        .refine(isPattern, "expected a regular expression")
        .optional()
        .describe("predict an observation up to the first match of this regular expression"),
      skip: z
        .string()
        .min(1)
        .refine(isPattern, "expected a regular expression")
        .optional()
        .describe(
          "do not predict what this regular expression matches at the beginning of an observation, such as warnings (ECHO)",
        ),
      every: z
        .int()
        .min(1)
        .default(1)
        .describe("learn observations in every this many updates (1: in all)"),
    })
    .prefault({ loss: "off" }),
);

function isPattern(text: string): boolean {
  try {
    return new RegExp(text) !== undefined;
  } catch {
    return false;
  }
}

export type PawOptions = z.output<ReturnType<typeof pawOptions>>;

/** The same as a caller gives them: what is left out has its default. */
export type PawSettings = z.input<ReturnType<typeof pawOptions>>;

/** Adds a world-model loss, so that `paw.loss` can name it. */
export function registerWorldLoss(name: string, loss: WorldLoss): void {
  const taken = { names: [...worldLossNames(), "off"], settings: pawOptions().unwrap().shape };
  checkLoss(`world-model loss "${name}"`, name, loss, taken);
  addPart("worldLosses", name, loss);
}

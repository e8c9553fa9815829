/** Settings of PaW with the paper's defaults: types, help and errors come from here. */
import { z } from "zod";
import { lossSettings, worldLosses, worldLossNames } from "./world-losses.js";

const titles = Object.values(worldLosses)
  .map(({ title }) => title)
  .join(", ");

export const pawOptions = z
  .strictObject({
    loss: z
      .enum([...worldLossNames, "off"])
      .default(worldLossNames[0])
      .describe(`world-model loss: ${titles}; off trains the policy alone`),
    ...lossSettings,
    alpha: z
      .number()
      .gt(0)
      .max(1)
      .default(0.75)
      .describe("α: the share of transitions to learn from, those of highest action entropy"),
    entropy: z
      .enum(["sampled", "full"])
      .default("sampled")
      .describe("action entropy of the sampled tokens, or of the whole distribution"),
    balance: z
      .union([z.literal("adaptive"), z.number().min(0)])
      .default("adaptive")
      .describe("λ: 1 − mean return / largest return of each group, or a fixed number"),
    normaliser: z
      .enum(["paper", "tokens"])
      .default("paper")
      .describe("mean over groups, transitions and tokens (paper), or over all tokens"),
    horizon: z
      .int()
      .min(1)
      .default(1)
      .describe("observations to predict after each action; above 1 goes beyond the paper"),
    horizonDiscount: z
      .number()
      .gt(0)
      .max(1)
      .default(0.5)
      .describe("what each further observation counts, relative to the one before"),
    dedupe: z
      .boolean()
      .default(false)
      .describe("leave out repeated transitions before selection; beyond the paper"),
    gradientCap: z
      .number()
      .gt(0)
      .optional()
      .describe("longest world-model gradient, relative to the policy's running mean; absent: any"),
    gradientLength: z
      .enum(["cmae"])
      .optional()
      .describe(
        "cmae: λ is scaled until the gradient is as long as clipped MAE's; absent: its own",
      ),
    skipWithoutSignal: z
      .enum(["off", "updates", "groups"])
      .default("off")
      .describe("no world modelling in updates, or in groups, whose episodes all earned the same"),
  })
  .prefault({});

export type PawOptions = z.output<typeof pawOptions>;

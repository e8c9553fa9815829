/**
 * The whole objective of an update: the policy's losses, plus the world model's if PaW is on (PaW
 * eq. 3).
 */
import { z } from "zod";
import { addPart, schemaOfParts } from "../added-parts.js";
import { type Objective, sumObjectives } from "./expression.js";
import { offPolicy } from "./importance.js";
import { checkLoss } from "./loss-plugin.js";
import { type PawSettings, pawOptions } from "./paw-options.js";
import { entropyObjective, klObjective, policyObjective, valueObjective } from "./policy.js";
import {
  type PolicyLoss,
  policyLossNames,
  policyLossSettings,
  policyLossTitles,
  policyTokenLoss,
} from "./policy-losses.js";
import { worldObjective } from "./world-losses.js";

const coefficient = z.number().min(0);

/** Settings of the policy's losses: types, defaults, help and errors come from here. */
export const objectiveOptions = schemaOfParts("policyLosses", () =>
  z
    .strictObject({
      loss: z
        .enum(policyLossNames())
        .default("clip")
        .describe(`policy loss: ${policyLossTitles().join(", ")}`),
      ...policyLossSettings(),
      importanceCap: z
        .number()
        .gt(0)
        .default(2)
        .describe("upper bound of the importance weight p(engine) / p(sampler)"),
      kl: coefficient
        .default(0.01)
        .describe("β: coefficient of the KL penalty to the reference model"),
      entropy: coefficient.default(0.001).describe("coefficient of the entropy bonus"),
      valueClip: z.number().gt(0).default(0.5).describe("clip range of value predictions"),
      valueCoefficient: coefficient
        .default(0.01)
        .describe(
          "coefficient of the value loss; keep it small if the critic shares the policy's weights",
        ),
      aggregation: z
        .enum(["token-mean", "response-mean", "group-mean"])
        .default("token-mean")
        .describe(
          "mean of the policy loss: over action tokens, as in verl-agent; over responses, then tokens (GRPO, GSPO); or over groups, then episodes (PaW eq. 1, 11; Dr. GRPO)",
        ),
    })
    .prefault({}),
);

export type ObjectiveOptions = z.output<ReturnType<typeof objectiveOptions>>;

/** The same as a caller gives them: what is left out has its default. */
export type ObjectiveSettings = z.input<ReturnType<typeof objectiveOptions>>;

/** Adds a loss of the policy, so that `objective.loss` can name it. */
export function registerPolicyLoss(name: string, loss: PolicyLoss): void {
  const taken = { names: policyLossNames(), settings: objectiveOptions().unwrap().shape };
  checkLoss(`policy loss "${name}"`, name, loss, taken);
  addPart("policyLosses", name, loss);
}

/** What else the objective has terms for: values, and actions that another program sampled. */
interface ObjectiveTerms {
  readonly critic?: boolean;
  readonly sampler?: boolean;
}

/**
 * The objective of an update. A coefficient of 0 leaves out its term and inputs; so does having no
 * separate sampler.
 */
export function updateObjective(
  settings: ObjectiveSettings,
  pawSettings: PawSettings,
  { critic = false, sampler = false }: ObjectiveTerms = {},
): Objective {
  const options = objectiveOptions().parse(settings);
  const paw = pawOptions().parse(pawSettings);
  const { loss } = paw;
  const token = policyTokenLoss(options);
  return sumObjectives(
    policyObjective(sampler ? offPolicy(token, options) : token),
    ...(options.kl > 0 ? [klObjective(options.kl)] : []),
    ...(options.entropy > 0 ? [entropyObjective(options.entropy)] : []),
    ...(critic ? [valueObjective(options)] : []),
    ...(loss === "off" ? [] : [worldObjective({ ...paw, loss })]),
  );
}

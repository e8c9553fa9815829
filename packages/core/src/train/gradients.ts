/**
 * How the policy's and the world model's gradients relate: their norms, and the cosine between
 * them.
 *
 * Measured on a whole update, at the weights that sampled it and with the update's own token
 * weights (`packages/core/src/update/weights.ts`), before it is split into mini-batches: the gradients of L_RL and of
 * λ·L_WM in PaW eq. 11. The policy's gradient is that of everything except the world model's term:
 * KL penalty, entropy bonus and a critic's loss too. On part of an update the norms would differ:
 * gradients of different signs cancel over many sequences.
 *
 * Each norm takes its own backward pass, over the tokens that contribute to it, so this is done
 * every k updates (`gradients.every`). The cosine follows from a third pass, in which both are
 * scaled to the same norm, because rounding would otherwise drown the shorter one:
 *
 *   s = |a| / |b|,   |a + s·b|² = 2·|a|²·(1 + cos)
 */
import { z } from "zod";
import type { Engine, TrainSequence } from "../engine/engine.js";
import { type Objective, sumObjectives } from "../objectives/expression.js";
import { type ObjectiveOptions, updateObjective } from "../objectives/objective.js";
import type { PawOptions } from "../objectives/paw-options.js";
import { worldObjective } from "../objectives/world-losses.js";
import { scaleWorld, type Update } from "../update/update.js";
import { withResponseRatios } from "./response-ratios.js";

/** When to measure. */
export const gradientOptions = z
  .strictObject({
    every: z
      .int()
      .min(0)
      .default(10)
      .describe(
        "measure the policy's and the world model's gradients every this many updates (0: never)",
      ),
  })
  .prefault({});

/** The settings of what is measured, and when. */
export interface MeasuringOptions {
  readonly gradients: z.output<typeof gradientOptions>;
  readonly objective: ObjectiveOptions;
  readonly paw: PawOptions;
}

/** Norms of the two gradients and the cosine of the angle between them; NaN if one is 0. */
export interface GradientRelation {
  readonly "gradient.policy": number;
  readonly "gradient.world": number;
  readonly "gradient.cosine": number;
}

/** Measures the gradients of an update if that is due and there are two; changes no weights. */
export async function measureGradients(
  engine: Engine,
  update: Update,
  { gradients: { every }, objective, paw }: MeasuringOptions,
  terms: { readonly critic: boolean; readonly sampler: boolean },
  index: number,
): Promise<GradientRelation | undefined> {
  const { loss } = paw;
  if (every === 0 || index % every !== 0) return undefined;
  if (loss === "off" || update.sequences.length === 0) return undefined;
  const policy = updateObjective(objective, { ...paw, loss: "off" }, terms);
  const sequences = await withResponseRatios(engine, update.sequences, policy, true);
  const world = worldObjective({ ...paw, loss });
  return relateGradients(engine, { ...update, sequences }, { policy, world });
}

/**
 * Relates the gradients of two objectives over a whole update, one on action and one on observation
 * tokens.
 */
export async function relateGradients(
  engine: Engine,
  update: Update,
  objectives: { readonly policy: Objective; readonly world: Objective },
): Promise<GradientRelation> {
  const lengthOf = async (sequences: readonly TrainSequence[], objective: Objective) => {
    if (sequences.length === 0) return 0;
    await engine.forwardBackward(sequences, objective);
    return (await engine.discardGradients()).gradNorm;
  };
  const policy = await lengthOf(only("policyWeight", update), objectives.policy);
  const world = await lengthOf(only("worldWeight", update), objectives.world);
  const cosine = async () => {
    const { sequences } = scaleWorld(update, policy / world);
    const both = await lengthOf(sequences, sumObjectives(objectives.policy, objectives.world));
    return both ** 2 / (2 * policy ** 2) - 1;
  };
  return {
    "gradient.policy": policy,
    "gradient.world": world,
    "gradient.cosine": policy > 0 && world > 0 ? await cosine() : Number.NaN,
  };
}

/** The sequences with only the tokens of that weight as targets, cut after the last of them. */
function only(weight: "policyWeight" | "worldWeight", update: Update): readonly TrainSequence[] {
  return update.sequences.flatMap((sequence) => {
    const weights = Array.from(sequence.inputs[weight] ?? []);
    const end = weights.findLastIndex((x) => x !== 0) + 1;
    if (end === 0) return [];
    const cut = (values: ArrayLike<number>) => Array.from(values).slice(0, end);
    return [
      {
        ids: cut(sequence.ids),
        targets: weights.slice(0, end).map((x) => (x === 0 ? 0 : 1)),
        ...(sequence.temperatures && { temperatures: cut(sequence.temperatures) }),
        ...(sequence.constraints && {
          constraints: sequence.constraints
            .filter((span) => span.start < end)
            .map((span) => ({ ...span, end: Math.min(span.end, end) })),
        }),
        inputs: Object.fromEntries(
          Object.entries(sequence.inputs).map(([name, values]) => [name, cut(values)]),
        ),
      },
    ];
  });
}

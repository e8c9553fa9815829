/**
 * How the policy's and the world model's gradients relate: their lengths, and the cosine between them.
 *
 * The cosine follows from the lengths alone: |a + b|² = |a|² + |b|² + 2·|a|·|b|·cos. Measured on a sample of
 * an update's sequences, spread over all of its groups, before it is learnt, because every length takes a backward pass of its own.
 */
import type { Engine } from "../engine/engine.js";
import { type Objective, sumObjectives } from "../objectives/expression.js";
import type { Update } from "../update/update.js";

/** Lengths of the two gradients and the cosine of the angle between them; NaN where one is 0. */
export interface GradientRelation {
  readonly "gradient.policy": number;
  readonly "gradient.world": number;
  readonly "gradient.cosine": number;
}

/** Measures the gradients of two objectives on some of the update's sequences; changes no weights. */
export async function relateGradients(
  engine: Engine,
  update: Update,
  objectives: { readonly policy: Objective; readonly world: Objective },
  sample: number,
): Promise<GradientRelation> {
  const all = update.sequences;
  const count = Math.min(sample, all.length);
  const sequences = Array.from(
    { length: count },
    (_, i) => all[Math.floor((i * all.length) / count)]!,
  );
  const lengthOf = async (objective: Objective): Promise<number> => {
    await engine.forwardBackward(sequences, objective);
    return (await engine.discardGradients()).gradNorm;
  };
  const policy = await lengthOf(objectives.policy);
  const world = await lengthOf(objectives.world);
  const both = await lengthOf(sumObjectives(objectives.policy, objectives.world));
  return {
    "gradient.policy": policy,
    "gradient.world": world,
    "gradient.cosine": (both ** 2 - policy ** 2 - world ** 2) / (2 * policy * world),
  };
}

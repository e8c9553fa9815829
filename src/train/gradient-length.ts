/**
 * Scales the world model's gradient to the norm of clipped MAE's (`paw.gradientLength`; beyond the
 * paper, for comparisons). Losses differ in what they learn from and in how large their gradients
 * are; at the same norm only the first difference remains:
 *
 *   scale = ‖∇ λ·L_cmae‖ / ‖∇ λ·L_WM‖,   λ_g ← scale·λ_g
 *
 * Both are measured on the whole update before it is learnt, with the same transitions and weights.
 * Later mini-batches use the same scale, although the weights have moved by then. Two more passes
 * make learning three times as long; `paw.gradientLengthShare` measures on part of the sequences.
 */
import { ConfigError } from "../config/config-error.js";
import type { Engine } from "../engine/engine.js";
import type { Objective } from "../objectives/expression.js";
import type { PawOptions } from "../objectives/paw-options.js";
import { worldObjective } from "../objectives/world.js";
import type { Update } from "../update/update.js";

/** What λ is multiplied by in this update; 1 if the loss has no gradient. Changes no weights. */
export async function lengthScale(
  engine: Engine,
  { sequences }: Pick<Update, "sequences">,
  paw: PawOptions,
): Promise<number> {
  const measured = shareOf(sequences, paw.gradientLengthShare);
  const lengthOf = async (objective: Objective): Promise<number> => {
    await engine.forwardBackward(measured, objective);
    return (await engine.discardGradients()).gradNorm;
  };
  if (paw.loss === "off" || measured.length === 0) return 1;
  const own = await lengthOf(worldObjective({ ...paw, loss: paw.loss }));
  return own > 0 ? (await lengthOf(worldObjective({ ...paw, loss: "cmae" }))) / own : 1;
}

/** A share of the sequences with something to predict, at least one, evenly spread over groups. */
function shareOf(sequences: Update["sequences"], share: number): Update["sequences"] {
  const place = (index: number): number => Math.floor(index * share);
  return sequences
    .filter(({ inputs }) => Array.from(inputs.worldWeight ?? []).some((weight) => weight !== 0))
    .filter((_, index) => index === 0 || place(index) > place(index - 1));
}

/** Rejects the setting if it would change nothing, or together with a cap. */
export function checkGradientLength({ paw }: { readonly paw: PawOptions }): void {
  if (paw.gradientLength === undefined) return;
  if (paw.loss === "cmae" || paw.loss === "off")
    throw new ConfigError(
      `paw.gradientLength: gives another loss the length of clipped MAE's gradient, but paw.loss is ${paw.loss}; set that to ce or mae, or leave the length out`,
    );
  if (paw.gradientCap !== undefined)
    throw new ConfigError(
      "paw.gradientLength: paw.gradientCap sets the length of the same gradient; leave one of them out",
    );
}

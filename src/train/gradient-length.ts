/**
 * The world model's gradient at clipped MAE's length (`paw.gradientLength`; beyond the paper, for comparisons). Losses
 * differ in what they learn from and in how hard they pull; at the same length only the first is left:
 *
 *   scale = ‖∇ λ·L_cmae‖ / ‖∇ λ·L_WM‖,   λ_g ← scale·λ_g
 *
 * Both are measured on the whole update before it is learnt, with the same transitions and weights. Its later
 * mini-batches are learnt at that scale too, though the weights have moved by then.
 */
import { ConfigError } from "../config/config-error.js";
import type { Engine } from "../engine/engine.js";
import type { Objective } from "../objectives/expression.js";
import type { PawOptions } from "../objectives/paw-options.js";
import { worldObjective } from "../objectives/world.js";
import type { Update } from "../update/update.js";

/** What λ is multiplied with in this update; 1 where the loss has no gradient. Changes no weights. */
export async function lengthScale(
  engine: Engine,
  { sequences }: Pick<Update, "sequences">,
  paw: PawOptions,
): Promise<number> {
  const lengthOf = async (objective: Objective): Promise<number> => {
    await engine.forwardBackward(sequences, objective);
    return (await engine.discardGradients()).gradNorm;
  };
  if (paw.loss === "off" || sequences.length === 0) return 1;
  const own = await lengthOf(worldObjective({ ...paw, loss: paw.loss }));
  return own > 0 ? (await lengthOf(worldObjective({ ...paw, loss: "cmae" }))) / own : 1;
}

/** Refuses a length that the loss has anyway, and two lengths at once. */
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

/**
 * Balance: how much world modelling a group gets; more if its episodes earn little (PaW eq. 10).
 *
 *   λ_g = 1 − R̄_g / R_max, clamped to [0, 1]
 *
 * R̄_g is the mean return of the group's unbroken episodes, without penalties.
 */
import { mean } from "../advantages/statistics.js";

/** Adaptive, or the same λ for every group. */
export type Balance = "adaptive" | number;

/** λ of each group from the returns of its episodes, groups × episodes; 0 without episodes. */
export function balance(
  returns: readonly (readonly number[])[],
  how: Balance,
  maxReturn: number,
): readonly number[] {
  if (how === "adaptive" && !(maxReturn > 0 && Number.isFinite(maxReturn)))
    throw new Error(
      `the adaptive λ needs the largest return an episode can have, a positive number, but it is ${maxReturn}; fix maxReturn of the environment, or set a fixed paw.lambda`,
    );
  return returns.map((episodes) => {
    if (episodes.length === 0) return 0;
    return how === "adaptive" ? Math.min(Math.max(1 - mean(episodes) / maxReturn, 0), 1) : how;
  });
}

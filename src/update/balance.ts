/**
 * Balance: how much world modelling a group gets; more if its episodes earn little (PaW eq. 10).
 *
 *   λ_g = 1 − R̄_g / R_max, clamped to [0, 1]
 *
 * R̄_g is the mean return of the group's unbroken episodes, without penalties, and R_max the largest
 * that its task allows.
 */
import { mean } from "../advantages/statistics.js";

/** Adaptive, or the same λ for every group. */
export type Balance = "adaptive" | number;

/**
 * λ of each group from the returns of its episodes, groups × episodes, and the largest return of its
 * task; 0 without episodes.
 */
export function balance(
  returns: readonly (readonly number[])[],
  how: Balance,
  maxReturns: readonly number[],
): readonly number[] {
  return returns.map((episodes, g) => {
    const most = maxReturns[g]!;
    if (how === "adaptive" && !(most > 0 && Number.isFinite(most)))
      throw new Error(
        `the adaptive λ needs the largest return an episode can have, a positive number, but it is ${most}; fix maxReturn of the environment, or set a fixed paw.lambda`,
      );
    if (episodes.length === 0) return 0;
    return how === "adaptive" ? Math.min(Math.max(1 - mean(episodes) / most, 0), 1) : how;
  });
}

/**
 * What PaW teaches the world model, and how much.
 *
 * Selection: the transitions where the policy was most uncertain (PaW eq. 4).
 *
 *   S_α = Top_α(P; H),   the ⌈α·N⌉ transitions of the update with the largest action entropy H
 *
 *   sampled:  H = −(1/|a|) Σ q·log q, q the probability the policy gave each sampled action token
 *   full:     H = mean Shannon entropy of the distributions the action tokens were sampled from
 *
 * Of equal entropies the earlier transition goes first, so that a run is reproducible.
 *
 * Balance: a group's world modelling has more weight if its episodes earn little (PaW eq. 10).
 *
 *   λ_g = 1 − R̄_g / R_max, clamped to [0, 1]
 *
 * R̄_g is the mean return of the group's unbroken episodes, without penalties, and R_max the largest
 * that its task allows.
 */
import { mean } from "../advantages/statistics.js";

/** H of an action from the log-probabilities of its tokens; 0 without tokens. */
export function sampledEntropy(logprobs: ArrayLike<number>): number {
  let total = 0;
  for (let i = 0; i < logprobs.length; i++) {
    const q = Math.exp(logprobs[i]!);
    // The limit of q·log q is 0, but the product itself would be 0 · −∞.
    if (q > 0) total -= q * logprobs[i]!;
  }
  return total / Math.max(logprobs.length, 1);
}

/** H of an action from the entropy at each of its tokens; 0 without tokens. */
export function fullEntropy(entropies: ArrayLike<number>): number {
  let total = 0;
  for (let i = 0; i < entropies.length; i++) total += entropies[i]!;
  return total / Math.max(entropies.length, 1);
}

/** Whether each transition is among the ⌈α·N⌉ of the largest entropy. */
export function selectTop(entropies: readonly number[], alpha: number): readonly boolean[] {
  // 0.07 · 100 is slightly more than 7 in binary, and must not become 8.
  const count = Math.ceil(alpha * entropies.length - 1e-9);
  const order = entropies.map((_, i) => i).sort((i, j) => entropies[j]! - entropies[i]! || i - j);
  const selected = new Array<boolean>(entropies.length).fill(false);
  for (const i of order.slice(0, count)) selected[i] = true;
  return selected;
}

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

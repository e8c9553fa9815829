/**
 * On-policy distillation: a teacher's log-probabilities of the tokens that the policy itself sampled
 * (Agarwal et al. 2024, arXiv 2306.13649; the reverse KL, token by token, as an advantage: Thinking
 * Machines Lab 2025, "On-Policy Distillation").
 *
 *   D_t = log p_teacher(a_t) − old log p(a_t)
 *   A_t = A + β·(D_t − mean(D))        A: 0 unless rewards count too
 *
 * The mean over the update's sampled tokens is an estimate of −KL(policy ‖ teacher). As a baseline it
 * changes nothing on average, and less is left to chance: far from the teacher every D_t is below 0.
 * Nothing is divided: a policy that has reached its teacher has nothing left to learn from it.
 */
import type { Advantages } from "../advantages/advantages.js";
import type { CreditedTransition, Transition } from "./transitions.js";

/** How a teacher's opinion becomes an advantage. */
export interface Distillation {
  /** β. */
  readonly weight: number;
  /** Whether what the estimator says of the returns counts too. */
  readonly rewards: boolean;
}

/** The log-probabilities of a transition's tokens, by index. */
export type TokenLogprobs = Pick<
  CreditedTransition,
  "oldLogprobs" | "teacherLogprobs" | "logprobs"
> &
  Pick<Transition, "actionStart" | "actionEnd">;

/** log p_teacher − old log p for each token of the action. */
export function teacherDifferences({
  oldLogprobs,
  teacherLogprobs,
  logprobs,
  actionStart,
  actionEnd,
}: TokenLogprobs): readonly number[] {
  return Array.from({ length: actionEnd - actionStart }, (_, n) => {
    const old = oldLogprobs?.[actionStart + n] ?? logprobs![n]!;
    return teacherLogprobs![actionStart + n]! - old;
  });
}

/** The advantage of each token of the action, in an update of this distance from the teacher. */
export function distilledAdvantage(
  advantage: Advantages["advantages"][number][number][number],
  tokens: TokenLogprobs,
  distance: number,
  { weight, rewards }: Distillation,
): readonly number[] {
  const given = (n: number): number => {
    if (!rewards) return 0;
    return typeof advantage === "number" ? advantage : advantage[n]!;
  };
  return teacherDifferences(tokens).map(
    (difference, n) => given(n) + weight * (difference + distance),
  );
}

/** The mean of old log p − log p_teacher over all tokens: how far the policy is from its teacher. */
export function teacherDistance(all: readonly TokenLogprobs[]): number | undefined {
  if (all.length === 0 || all[0]!.teacherLogprobs === undefined) return undefined;
  const differences = all.flatMap(teacherDifferences);
  return -differences.reduce((sum, difference) => sum + difference, 0) / differences.length;
}

/**
 * Scores: what each step of an episode is worth before it is compared within its group.
 *
 *   s_i = R − c·fined_i
 *
 * R is the undiscounted return of the episode, the same for each of its steps; c is the penalty for
 * an invalid action, or only for a malformed one. In a group where every episode fails, the penalty is the only difference, and
 * dividing by the group's standard deviation blows it up to unit size, however small c is. So it
 * can also be subtracted from the advantage, after normalisation; then s_i = R.
 */
import type { StepTable } from "./statistics.js";

/** Where the penalty for an invalid action is subtracted: from the score, or from the advantage. */
type PenaltyPlace = "inside" | "after";

/** Which steps are fined: those with malformed responses only, or every invalid action. */
type PenaltyOn = "malformed" | "invalid";

/** The penalty for an invalid action. */
export interface PenaltyOptions {
  /** c; 0 is no penalty. */
  readonly penalty: number;
  readonly penaltyPlace: PenaltyPlace;
  readonly penaltyOn: PenaltyOn;
}

/** What scores are made of: one finished episode. */
export interface ScoredEpisode {
  readonly return: number;
  readonly rewards: readonly number[];
  /** Whether each step has to pay the penalty. */
  readonly fined: readonly boolean[];
  /** The numbers of the steps in the order of time (default: as listed). */
  readonly order?: readonly number[];
}

/** Numbers of steps computed from others in the order of time, listed as the steps are. */
export function alongTime<A, B>(
  { order }: Pick<ScoredEpisode, "order">,
  listed: readonly A[],
  compute: (inTime: readonly A[]) => readonly B[],
): readonly B[] {
  if (order === undefined) return compute(listed);
  const computed = compute(order.map((step) => listed[step]!));
  const result = new Array<B>(listed.length);
  for (const [at, step] of order.entries()) result[step] = computed[at]!;
  return result;
}

/** The penalty of each step, c·fined_i: episodes × steps. */
export function penalties(episodes: readonly ScoredEpisode[], penalty: number): StepTable {
  return episodes.map(({ fined }) => fined.map((pays) => (pays ? penalty : 0)));
}

/** The score of each step, minus the penalty if it is inside: episodes × steps. */
export function scores(
  episodes: readonly ScoredEpisode[],
  options: Omit<PenaltyOptions, "penaltyOn">,
): StepTable {
  const fines = penalties(episodes, options.penalty);
  return episodes.map((episode, e) =>
    subtractInside(
      episode.rewards.map(() => episode.return),
      fines[e]!,
      options,
    ),
  );
}

/** The rewards of one episode's steps, minus their penalties if those are inside. */
export function subtractInside(
  earned: readonly number[],
  penalty: readonly number[],
  { penaltyPlace }: Pick<PenaltyOptions, "penaltyPlace">,
): readonly number[] {
  return penaltyPlace === "inside" ? earned.map((x, i) => x - penalty[i]!) : earned;
}

/**
 * Tree returns: GRPO for groups whose episodes branch off one another, and a comparison among the
 * continuations of a state (Hou et al. 2025, arXiv 2506.11902, TreeRL §3: V of a node, and its
 * global and local advantages).
 *
 *   V_t = mean return of the episodes that took step t      one where it is not shared
 *   B_t = V of the step before the last branching state at or before t
 *   s_t = V_t − c·fined_t
 *   A_t = (s_t − mean(s) + ω·(V_t − B_t)) / (std(s) + 1e-6)        std with denominator n − 1
 *
 * The first term is GRPO of the scores, with each step once, however many episodes share it; the
 * second is 0 before an episode's first branching state. TreeRL compares there too, with the root,
 * and divides shared steps by √ of the episodes that took them, because each of those teaches them;
 * here a step is learnt once. With `norm mean` nothing is divided.
 */
import { z } from "zod";
import type { Episode } from "../rollout/episode.js";
import { commonSettings, groupEstimator } from "./estimator.js";
import { type PenaltyOptions, penalties, subtractInside } from "./scores.js";
import {
  mean,
  type Normalisation,
  normaliser,
  normSetting,
  perSetting,
  type StatisticsUnit,
  type StepTable,
  statisticsOver,
} from "./statistics.js";

/** What the formula looks at in an episode. */
type Path = Pick<Episode, "attempt" | "branch" | "return">;

/** V and B of each step of an episode, by the unbroken episodes of its group. */
function returnsOf(paths: readonly Path[], { attempt, branch, return: own }: Path) {
  const trunk = branch?.from ?? attempt;
  /** V of a step of the trunk. */
  const shared = (step: number): number =>
    mean(
      paths
        .filter((path) =>
          path.branch === undefined
            ? path.attempt === trunk
            : path.branch.from === trunk && path.branch.step > step,
        )
        .map((path) => path.return),
    );
  const cuts =
    branch === undefined
      ? paths.flatMap((path) => (path.branch?.from === attempt ? [path.branch.step] : []))
      : [branch.step];
  return (step: number): { readonly value: number; readonly before: number } => {
    const value = branch === undefined ? shared(step) : own;
    const cut = Math.max(...cuts.filter((at) => at <= step));
    return { value, before: Number.isFinite(cut) ? shared(cut - 1) : value };
  };
}

/** How steps are compared. */
export interface TreeOptions extends Pick<PenaltyOptions, "penaltyPlace"> {
  readonly per: StatisticsUnit;
  readonly norm: Normalisation;
  /** ω: the weight of the comparison among the continuations of a state. */
  readonly branchWeight: number;
}

/**
 * Advantages of one group's steps, from their penalties: episodes × steps. Those of steps that a
 * branch shares are 0: they are learnt where they were played.
 */
export function tree(paths: readonly Path[], fines: StepTable, options: TreeOptions): StepTable {
  const { per, norm, branchWeight } = options;
  const whole = paths.filter((_, e) => fines[e]!.length > 0);
  const own = paths.map((path, e) => {
    const of = returnsOf(whole, path);
    const first = path.branch?.step ?? 0;
    const worth = fines[e]!.slice(first).map((_, i) => of(first + i));
    const values = worth.map(({ value }) => value);
    return {
      worth,
      shared: fines[e]!.slice(0, first).map(() => 0),
      scores: subtractInside(values, fines[e]!.slice(first), options),
    };
  });
  const all = statisticsOver(
    own.map(({ scores }) => scores),
    per,
  );
  const compare = all.length === 1 ? (s: number) => s : normaliser(all, norm);
  return own.map(({ worth, shared, scores }) => [
    ...shared,
    ...worth.map(({ value, before }, i) => compare(scores[i]! + branchWeight * (value - before))),
  ]);
}

export const treeEstimator = groupEstimator(
  z.strictObject({
    name: z.literal("tree"),
    per: perSetting,
    norm: normSetting,
    branchWeight: z
      .number()
      .min(0)
      .default(1)
      .describe("ω: weight of the comparison among the continuations of a state"),
    ...commonSettings,
  }),
  (_, options, { group, episodes }) =>
    tree(group.episodes, penalties(episodes, options.penalty), options),
);

/**
 * A threshold for the embedding reward: the distance that best separates right from wrong states.
 */
import { type PairKind, pairKinds } from "./state-pairs.js";

/** Distances of pairs, by kind. */
export type Distances = Readonly<Record<PairKind, readonly number[]>>;

/** The effect of a threshold. */
export interface ThresholdEffect {
  readonly threshold: number;
  /** Share of each kind that it accepts; NaN if there was none. */
  readonly accepted: Readonly<Record<PairKind, number>>;
  /**
   * Balanced accuracy: the mean of what is accepted among right kinds and rejected among wrong
   * kinds.
   */
  readonly accuracy: number;
}

/** Maximum share of altered states that a strict threshold accepts. */
const STRICT_SHARE = 0.05;

/** The threshold with the best accuracy, and the largest one that accepts few altered states. */
export function proposeThresholds(distances: Distances): {
  readonly best: ThresholdEffect;
  readonly strict: ThresholdEffect;
} {
  const all = [...new Set(Object.values(distances).flat())].sort((a, b) => a - b);
  // Nothing changes between two neighbours, so their midpoint represents the interval.
  const candidates = all.map((distance, i) => (distance + (all[i + 1] ?? distance + 1e-3)) / 2);
  const effects = candidates
    .filter((threshold) => threshold > 0)
    .map((threshold) => effectOf(distances, threshold));
  if (effects.length === 0) {
    throw new Error("a threshold needs pairs of states that differ, and there are none");
  }
  const best = effects.reduce((a, b) => (b.accuracy > a.accuracy ? b : a));
  const careful = effects.filter(({ accepted }) => !(accepted.altered > STRICT_SHARE));
  return { best, strict: careful.at(-1) ?? effects[0]! };
}

/** Evaluates a threshold. */
export function effectOf(distances: Distances, threshold: number): ThresholdEffect {
  const share = (kind: PairKind): number => {
    const of = distances[kind];
    return of.filter((distance) => distance < threshold).length / of.length;
  };
  const kinds = [...pairKinds.right, ...pairKinds.wrong];
  const accepted = Object.fromEntries(kinds.map((kind) => [kind, share(kind)])) as Record<
    PairKind,
    number
  >;
  const mean = (of: readonly PairKind[]): number => {
    const known = of.map((kind) => accepted[kind]).filter((value) => !Number.isNaN(value));
    return known.reduce((sum, value) => sum + value, 0) / Math.max(known.length, 1);
  };
  const accuracy = (mean(pairKinds.right) + 1 - mean(pairKinds.wrong)) / 2;
  return { threshold, accepted, accuracy };
}

/** A replayed update beside its record. */
import type { MetricsLine } from "../runs/metrics-file.js";

/** A number that did not come out as it was recorded; undefined where there is none. */
export interface Divergence {
  readonly update: number;
  readonly quantity: string;
  readonly recorded: number | undefined;
  readonly recomputed: number | undefined;
}

/** One update, computed again. */
export interface ReplayedUpdate {
  readonly update: number;
  /** The quantities that were compared. */
  readonly compared: readonly string[];
  /** Recorded, but not to be had from the record. */
  readonly left: readonly string[];
  /** Whether the update was learnt again from its weights. */
  readonly learnt: boolean;
  readonly divergences: readonly Divergence[];
}

/** What came out, and which of it an engine had a hand in. */
export interface Recomputed {
  readonly line: MetricsLine;
  readonly byEngine: (quantity: string) => boolean;
  readonly learnt: boolean;
}

/** Sums in another order differ in the last digits; nothing else may. */
const EXACT = 1e-9;

/** Whether a number is one of the update's, and not a time, a size in memory or an evaluation. */
export const isComparable = (name: string): boolean =>
  !/^(seconds\.|memory\.|eval\.|update$)/.test(name);

/** What differs between the record and what came out. */
export function compare(
  recorded: MetricsLine,
  { line, byEngine, learnt }: Recomputed,
  { tolerance }: { readonly tolerance: number },
): ReplayedUpdate {
  const update = recorded.update!;
  const names = Object.keys(recorded).filter(isComparable);
  const compared = names.filter((name) => name in line);
  const divergences = compared
    .filter((name) => {
      const [a, b] = [recorded[name]!, line[name]!];
      const allowed = byEngine(name)
        ? tolerance * Math.max(Math.abs(a), 0.1)
        : EXACT * Math.max(Math.abs(a), 1);
      return !(Math.abs(a - b) <= allowed);
    })
    .map((name) => ({
      update,
      quantity: name,
      recorded: recorded[name],
      recomputed: line[name],
    }));
  const left = names.filter((name) => !(name in line));
  return { update, compared, left, learnt, divergences };
}

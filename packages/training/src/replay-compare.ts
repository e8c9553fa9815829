/** Compares a replayed update with its record. */
import type { MetricsLine } from "@pawl/core/runs/metrics-file.js";

/** A number that differs from its record; undefined if it is missing. */
export interface Divergence {
  readonly update: number;
  readonly quantity: string;
  readonly recorded: number | undefined;
  readonly recomputed: number | undefined;
}

/** One recomputed update. */
export interface ReplayedUpdate {
  readonly update: number;
  /** The quantities that were compared. */
  readonly compared: readonly string[];
  /** Recorded, but not determined by the record. */
  readonly left: readonly string[];
  /** Whether the update was learnt again from its weights. */
  readonly learnt: boolean;
  readonly divergences: readonly Divergence[];
}

/** The recomputed numbers, and which of them an engine contributed to. */
export interface Recomputed {
  readonly line: MetricsLine;
  readonly byEngine: (quantity: string) => boolean;
  readonly learnt: boolean;
}

/** Summing in another order changes the last digits; nothing else may differ. */
const EXACT = 1e-9;

/**
 * Whether a number belongs to the update, rather than being a time, a load, a memory size, an evaluation or an alarm.
 */
export const isComparable = (name: string): boolean =>
  !/^(seconds\.|pace\.|memory\.|eval\.|alarm\.|notFinite\.|update$)/.test(name);

/** The differences between the record and the recomputed numbers. */
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

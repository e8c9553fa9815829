/**
 * The one number that stands for a run, in `pawl runs`, `pawl show`, the page and the choice of the best
 * checkpoint: success in the latest evaluation, on the last of its splits, which is by default
 * `valid_unseen`: tasks unlike those that the run learned from. A run without evaluations has what comes
 * nearest.
 */
import { successInterval } from "../success-interval.js";
import type { MetricsLine } from "./metrics-file.js";

/** A run's number. */
export interface Headline {
  readonly success: number;
  /** The metric that it is, such as `eval.valid_unseen.success`. */
  readonly of: string;
  /** Its 95 % interval (Wilson), where the number of episodes is known and each is of another task. */
  readonly interval?: readonly [low: number, high: number];
}

/** Where success is taken from if there was no evaluation, the best first. */
const OTHERS: readonly string[] = ["wm.exactMatch", "heldOut.reward", "train.success"];

/** The number of an evaluation; undefined if the line has none. */
export function evaluationHeadline(line: MetricsLine): Headline | undefined {
  const of = Object.keys(line).findLast((name) => /^eval\.\w+\.success$/.test(name));
  return of === undefined ? undefined : measured(of, line[of]!, line[episodesOf(of)]);
}

/** A run's number after one more line of metrics. */
export function headlineAfter(
  before: Headline | undefined,
  line: MetricsLine,
): Headline | undefined {
  const evaluated = evaluationHeadline(line);
  if (evaluated !== undefined) return evaluated;
  if (before?.of.startsWith("eval.")) return before;
  const rank = OTHERS.indexOf(before?.of ?? "");
  const others = OTHERS.slice(0, rank < 0 ? undefined : rank + 1);
  const of = others.find((name) => line[name] !== undefined);
  return of === undefined ? before : measured(of, line[of]!);
}

/** A run's number from all of its metrics, or from the summary of what has none: rollouts, evaluations. */
export function headlineOf(
  lines: readonly MetricsLine[],
  summary?: MetricsLine,
): Headline | undefined {
  const last = lines.reduce<Headline | undefined>(headlineAfter, undefined);
  return last ?? summaryHeadline(summary);
}

/**
 * The number of a rollout or an evaluation. Several attempts at one task are not independent, and only the
 * result card knows which are of one task: here they have no interval.
 */
export function summaryHeadline(summary: MetricsLine = {}): Headline | undefined {
  const { success, episodes, solvedWithin } = summary;
  if (success === undefined) return undefined;
  return measured("success", success, solvedWithin === undefined ? episodes : undefined);
}

const episodesOf = (of: string): string => of.replace(/success$/, "episodes");

function measured(of: string, success: number, episodes?: number): Headline {
  if (episodes === undefined) return { success, of };
  const successes = Math.round(success * episodes);
  return { success, of, interval: successInterval({ successes, episodes }) };
}

/** The runs in a folder. */
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { successInterval } from "../success-interval.js";
import { hasManifest } from "./manifest.js";
import type { MetricsLine } from "./metrics-file.js";
import { openRun, type RecordedRun } from "./run-folder.js";

// The one number that stands for a run, in `pawl runs`, `pawl show`, the page and the choice of the best
// checkpoint: success in the latest evaluation, on the last of its splits, which is by default
// `valid_unseen`: tasks unlike those that the run learned from. A run without evaluations has what comes
// nearest.

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

/** The run folders directly inside a folder, oldest first; unreadable ones are reported. */
export function listRuns(parent: string, onProblem: (message: string) => void): RecordedRun[] {
  if (!existsSync(parent)) return [];
  const runs: RecordedRun[] = [];
  for (const name of readdirSync(parent).sort()) {
    const folder = join(parent, name);
    if (!hasManifest(folder)) continue;
    try {
      runs.push(openRun(folder, onProblem));
    } catch (error) {
      onProblem((error as Error).message);
    }
  }
  return runs.sort((a, b) => a.manifest.createdAt.localeCompare(b.manifest.createdAt));
}

/** From start to end, without the time between its resumes. */
export function secondsOf({ manifest }: Pick<RecordedRun, "manifest">): number | undefined {
  const { createdAt, finishedAt, resumes = [] } = manifest;
  if (finishedAt === undefined) return undefined;
  const starts = [createdAt, ...resumes.map(({ at }) => at)];
  // Earlier versions did not record when a resumed run had stopped: such a part counts nothing.
  const ends = [...resumes.map(({ stoppedAt }, i) => stoppedAt ?? starts[i]!), finishedAt];
  const parts = starts.map((start, i) => Date.parse(ends[i]!) - Date.parse(start));
  return parts.reduce((sum, part) => sum + part, 0) / 1000;
}

/** How a run ended: `done`, `failed`, `interrupted`, `stopped`, `running now` or `killed`. */
export function endOf({ manifest: { status }, active }: RecordedRun): string {
  if (status !== "running") return status;
  // Marked as running, but no process is writing to it.
  return active ? "running now" : "killed";
}

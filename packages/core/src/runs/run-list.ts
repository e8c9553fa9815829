/** The runs in a folder. */
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { hasManifest } from "./manifest.js";
import { openRun, type RecordedRun } from "./run-folder.js";

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
export function secondsOf({ manifest }: RecordedRun): number | undefined {
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

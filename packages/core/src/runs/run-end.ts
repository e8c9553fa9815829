/** How a run ended, and how long it took. */
import type { RecordedRun } from "./run-folder.js";

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

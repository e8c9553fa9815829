/** How a run ended, and how long it took. */
import type { RecordedRun } from "./run-folder.js";

/** From start to end; a resumed run counts from its latest resume. */
export function secondsOf({ manifest }: RecordedRun): number | undefined {
  const { createdAt, finishedAt, resumes } = manifest;
  if (finishedAt === undefined) return undefined;
  return (Date.parse(finishedAt) - Date.parse(resumes?.at(-1)?.at ?? createdAt)) / 1000;
}

/** How a run ended: `done`, `failed`, `interrupted`, `stopped`, `running now` or `killed`. */
export function endOf({ manifest: { status }, active }: RecordedRun): string {
  if (status !== "running") return status;
  // Marked as running, but no process is writing to it.
  return active ? "running now" : "killed";
}

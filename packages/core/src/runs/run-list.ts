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

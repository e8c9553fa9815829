/** The folder of a new run: an empty one, or what a start that failed has left. */
import { existsSync, readdirSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { hasManifest, readManifest } from "./manifest.js";
import { RunError } from "./run-error.js";
import { findLock, type RunLock } from "./run-lock.js";
import { episodesPath, metricsPath } from "./small-file.js";

/** Names of ours for what is not complete, of earlier versions too. */
const TEMPORARY =
  /\.(?:[\da-f]{12}|[\da-f-]+\.[\da-f]{8})\.tmp$|^(?:triplets\.jsonl\.gz|\d+)\.tmp$|\.mending$/;

/**
 * Removes what killed writers left: whoever holds the lock is the only writer, so that nothing
 * temporary is anybody else's.
 */
export function removeLeftovers(folder: string): void {
  for (const place of [folder, join(folder, "checkpoints")])
    for (const name of existsSync(place) ? readdirSync(place) : [])
      if (TEMPORARY.test(name)) rmSync(join(place, name), { recursive: true, force: true });
}

/** Refuses a folder that a new run cannot have. */
export function checkNewFolder(folder: string): void {
  if (!existsSync(folder)) return;
  const [first] = readdirSync(folder);
  if (first === undefined) return;
  if (findLock(folder).owner === undefined && failedAtStart(folder)) return;
  throw new RunError(
    hasManifest(folder)
      ? `${folder} already holds a run: name another folder, or remove that one first`
      : `${folder} is not empty (it holds ${first}): a run needs a folder of its own`,
  );
}

/** Removes what a start that failed left; not before the lock is held, or it may be another's that has just begun. */
export function clearForStart(folder: string, lock: RunLock): void {
  if (!failedAtStart(folder)) {
    lock.release();
    throw new RunError(`${folder} holds a run since a moment ago: name another folder`);
  }
  for (const name of readdirSync(folder))
    if (!/^lock(\.|$)/.test(name)) rmSync(join(folder, name), { recursive: true });
}

/** Whether a folder holds only a run that ended before it had anything to keep, or a lock. */
function failedAtStart(folder: string): boolean {
  const isEmpty = (path: string): boolean => !existsSync(path) || statSync(path).size === 0;
  // Killed between its lock and its manifest.
  if (!hasManifest(folder))
    return (
      findLock(folder).number >= 0 &&
      isEmpty(episodesPath(folder)) &&
      readdirSync(folder).every((name) => OF_START.test(name))
    );
  const { status, resumes } = readManifest(folder);
  return (
    (status === "failed" || status === "interrupted") &&
    resumes === undefined &&
    isEmpty(episodesPath(folder)) &&
    isEmpty(metricsPath(folder)) &&
    // Nor weights.
    readdirSync(folder, { withFileTypes: true }).every(
      (entry) => !entry.isDirectory() || entry.name === "tensorboard",
    )
  );
}

/** What is in a folder before the manifest is: locks, an empty record, the manifest's draft. */
const OF_START = /^lock(\.\d+)?$|^lock\..*\.draft$|^episodes\.jsonl\.gz$|^manifest\.json\..*\.tmp$/;

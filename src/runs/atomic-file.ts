/** Files that are either whole or not there: written beside their place, synced, then renamed. */
import { closeSync, fsyncSync, openSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { explainIo, RunError } from "./run-error.js";

/** Writes a file so that a reader, or a crash at any moment, sees the old content or the new. */
export function writeFileAtomic(path: string, content: string | Uint8Array): void {
  const temporary = `${path}.${process.pid}.tmp`;
  try {
    const file = openSync(temporary, "w");
    try {
      writeFileSync(file, content);
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    renameSync(temporary, path);
    syncFolder(dirname(path));
  } catch (error) {
    rmSync(temporary, { force: true });
    throw new RunError(`could not write ${explainIo(error, path)}`, { cause: error });
  }
}

/** Makes a rename in this folder survive a power cut, on systems where folders can be synced. */
function syncFolder(folder: string): void {
  if (process.platform === "win32") return;
  const handle = openSync(folder, "r");
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}

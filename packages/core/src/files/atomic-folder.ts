/** Folders that appear complete or not at all. */
import { mkdir, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { writeError } from "./io-error.js";
import { sweep, temporaryName } from "./leftovers.js";

/**
 * Makes a folder through `fill`, under a temporary name until it is complete. If another process
 * makes the same folder at the same time, the first one stays.
 */
export async function writeFolderAtomically(
  folder: string,
  fill: (temporary: string) => Promise<void>,
): Promise<void> {
  await mkdir(dirname(folder), { recursive: true });
  // They may be large, so not only once.
  sweep(dirname(folder));
  const temporary = temporaryName(folder, "partial");
  await mkdir(temporary);
  try {
    await fill(temporary);
    await rename(temporary, folder).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== "ENOTEMPTY" && error.code !== "EEXIST") throw error;
    });
  } catch (error) {
    throw writeError(error, folder);
  } finally {
    await rm(temporary, { recursive: true, force: true });
  }
}

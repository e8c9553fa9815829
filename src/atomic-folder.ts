/** Folders that appear complete or not at all. */
import { randomBytes } from "node:crypto";
import { mkdir, readdir, rename, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { writeError } from "./io-error.js";
import { isAlive } from "./process-alive.js";

/**
 * Makes a folder through `fill`, under a temporary name until it is complete. If another process
 * makes the same folder at the same time, the first one stays.
 */
export async function writeFolderAtomically(
  folder: string,
  fill: (temporary: string) => Promise<void>,
): Promise<void> {
  await mkdir(dirname(folder), { recursive: true });
  await removeAbandoned(folder);
  const temporary = `${folder}.${process.pid}.${randomBytes(4).toString("hex")}.partial`;
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

/** A killed process leaves its temporary folder behind, which may be large. */
async function removeAbandoned(folder: string): Promise<void> {
  for (const name of await readdir(dirname(folder))) {
    if (!name.startsWith(`${basename(folder)}.`)) continue;
    const process = /\.(\d+)\.[0-9a-f]{8}\.partial$/.exec(name)?.[1];
    if (process !== undefined && !isAlive(Number(process)))
      await rm(join(dirname(folder), name), { recursive: true, force: true });
  }
}

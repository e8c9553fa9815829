/** Files that appear complete or not at all, whenever the process or the machine stops. */

import { randomBytes } from "node:crypto";
import {
  closeSync,
  existsSync,
  fsyncSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { type FileHandle, mkdir, open, rename, rm, statfs } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { UserError } from "../errors.js";
import { ownIdentity, stateOfTag, tagOf } from "../processes/process-alive.js";
import { writeError } from "./io-error.js";

/** Refuses to begin writing what does not fit on the disk; the folder need not exist yet. */
export async function requireDiskSpace(folder: string, bytes: number, what: string): Promise<void> {
  let there = resolve(folder);
  while (!existsSync(there)) there = dirname(there);
  const { bavail, bsize } = await statfs(there);
  if (bavail * bsize < bytes)
    throw new UserError(
      `no room for ${what}: it needs ${gigabytes(bytes)}, but the disk of ${there} has ${gigabytes(bavail * bsize)} left. Free some, or name another folder.`,
    );
}

const gigabytes = (bytes: number): string => `${(bytes / 1e9).toFixed(2)} GB`;

// Temporary files and folders that name their writer, so that what a killed process left behind is
// removed, and what another is still writing is not.

/** `NAME.TAG.RANDOM.tmp`; a folder's ends in `.partial`, a lock's in `.draft`. */
const NAME = /\.(\d+(?:-(?:0|[\da-f]{8})){4})\.[\da-f]{8}\.(?:tmp|partial|draft)$/;

/** The folders in which this process has already looked: some hold a hundred thousand files. */
const swept = new Set<string>();

/** A new temporary name beside a file or folder. */
export function temporaryName(path: string, ending: "tmp" | "partial" | "draft"): string {
  return `${path}.${tagOf(ownIdentity())}.${randomBytes(4).toString("hex")}.${ending}`;
}

/** Removes what dead processes left in a folder, once in the life of this process. */
export function sweepOnce(folder: string): void {
  const place = resolve(folder);
  if (swept.has(place)) return;
  swept.add(place);
  sweep(folder);
}

/** Removes what dead processes left in a folder. */
export function sweep(folder: string): void {
  try {
    for (const name of readdirSync(folder)) {
      const tag = NAME.exec(name)?.[1];
      if (tag !== undefined && stateOfTag(tag) === "dead")
        rmSync(join(folder, name), { recursive: true, force: true });
    }
  } catch {
    // A folder that cannot be read or cleaned is nobody's problem here: whoever writes says more.
  }
}

/** Writes a file through `write`, under a temporary name until its content is on the disk. */
export async function writeFileAtomically(
  file: string,
  write: (handle: FileHandle) => Promise<void>,
): Promise<void> {
  sweepOnce(dirname(file));
  const temporary = temporaryName(file, "tmp");
  try {
    const handle = await open(temporary, "wx");
    try {
      await write(handle);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(temporary, file);
  } catch (error) {
    await rm(temporary, { force: true });
    throw writeError(error, file);
  }
  await syncFolder(dirname(file));
}

/** The rename is only durable once the folder is synced. */
async function syncFolder(folder: string): Promise<void> {
  // Windows cannot open folders, and journals renames.
  if (process.platform === "win32") return;
  const handle = await open(folder, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** The same synchronously, for small texts. */
export function writeFileAtomicallySync(file: string, content: string): void {
  sweepOnce(dirname(file));
  const temporary = temporaryName(file, "tmp");
  try {
    const handle = openSync(temporary, "wx");
    try {
      writeFileSync(handle, content);
      fsyncSync(handle);
    } finally {
      closeSync(handle);
    }
    renameSync(temporary, file);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw writeError(error, file);
  }
  if (process.platform === "win32") return;
  const folder = openSync(dirname(file), "r");
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
}

/** Writes all bytes of a view; a single write call may write fewer. */
export async function writeFully(handle: FileHandle, view: ArrayBufferView): Promise<void> {
  const bytes = new Uint8Array(view.buffer, view.byteOffset, view.byteLength);
  for (let done = 0; done < bytes.length; ) {
    // The kernel takes at most 2 GiB per call.
    const length = Math.min(bytes.length - done, 2 ** 30);
    done += (await handle.write(bytes, done, length)).bytesWritten;
  }
}

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

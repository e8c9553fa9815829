/** Files that appear complete or not at all, whenever the process or the machine stops. */
import { closeSync, fsyncSync, openSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { type FileHandle, open, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { writeError } from "./io-error.js";
import { sweepOnce, temporaryName } from "./leftovers.js";

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

/**
 * Files that are read: regular ones only. A pipe in the place of a file would be waited for for
 * ever, and a device such as /dev/zero never ends.
 */
import { closeSync, constants, fstatSync, openSync, readFileSync } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { UserError } from "../errors.js";

/** A pipe, a socket or a device where a file was expected. */
export class NotRegularError extends UserError {
  override readonly name = "NotRegularError";
}

/** Without waiting for somebody to write to a pipe; Windows has no such flag, and no such files. */
const READ = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0);

/** Opens a regular file for reading. */
export function openRegular(path: string): number {
  const file = openSync(path, READ);
  try {
    requireRegular(fstatSync(file), path);
  } catch (error) {
    closeSync(file);
    throw error;
  }
  return file;
}

/** The same as a handle. */
export async function openRegularHandle(path: string): Promise<FileHandle> {
  const handle = await open(path, READ);
  try {
    requireRegular(await handle.stat(), path);
  } catch (error) {
    await handle.close();
    throw error;
  }
  return handle;
}

/** The bytes of a regular file. */
export function readRegular(path: string): Buffer {
  const file = openRegular(path);
  try {
    return readFileSync(file);
  } finally {
    closeSync(file);
  }
}

/** The text of a regular file. */
export const readRegularText = (path: string, encoding: BufferEncoding = "utf8"): string =>
  readRegular(path).toString(encoding);

/** Refuses what is neither a file nor a folder, which the system itself refuses to read. */
function requireRegular(
  found: { isFile(): boolean; isDirectory(): boolean; isFIFO(): boolean; isSocket(): boolean },
  path: string,
): void {
  if (found.isFile() || found.isDirectory()) return;
  const what = found.isFIFO() ? "a pipe" : found.isSocket() ? "a socket" : "a device";
  throw new NotRegularError(`${path}: it is ${what}, not a file`);
}

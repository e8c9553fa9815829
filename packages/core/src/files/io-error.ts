/** Errors of the operating system in words, with a remedy. */
import { UserError } from "../errors.js";
import { NotRegularError } from "./regular-file.js";

/** A file or folder that could not be written, in words. */
export class WriteError extends UserError {
  override readonly name = "WriteError";
}

const REMEDIES: Readonly<Record<string, string>> = {
  ENOSPC: "the disk is full: free some space, or name a folder on another disk",
  EFBIG: "the file grew past the limit set for this process (ulimit -f): raise it",
  EDQUOT: "the disk quota is used up: free some space, or name a folder on another disk",
  EACCES: "no permission: choose a folder that you may write to",
  EROFS: "the file system is read-only: choose another folder",
  EMFILE: "too many open files: raise the limit (ulimit -n)",
  ENOENT: "it does not exist",
  ENOTDIR: "a part of the path is a file, not a folder",
  EISDIR: "it is a folder, not a file",
};

const codeOf = (error: unknown): string =>
  String((error as NodeJS.ErrnoException | undefined)?.code ?? "");

/** The text of an operating-system error, with a remedy if one is known. */
export function explainIo(error: unknown, path: string): string {
  // It names its path itself.
  if (error instanceof NotRegularError) return error.message;
  const reason = REMEDIES[codeOf(error)];
  return `${path}: ${reason ?? (error instanceof Error ? error.message : String(error))}`;
}

/** Codes that mean there is no room, or no right, to write. */
const CANNOT_WRITE: readonly string[] = ["ENOSPC", "EDQUOT", "EFBIG", "EROFS", "EACCES"];

/** The error with the path and a remedy if writing was impossible; else as it is. */
export function writeError(error: unknown, path: string): unknown {
  if (error instanceof UserError || !CANNOT_WRITE.includes(codeOf(error))) return error;
  return new WriteError(`could not write ${explainIo(error, path)}`, { cause: error });
}

/** Whether there was no room left, however deep in the causes that is said. */
export function isDiskFull(error: unknown): boolean {
  if (["ENOSPC", "EDQUOT", "EFBIG"].includes(codeOf(error))) return true;
  // Threads pass on only the text of an error.
  if (
    error instanceof Error &&
    /^could not write .*: (the disk |the file grew)/.test(error.message)
  )
    return true;
  return error instanceof Error && error.cause !== undefined && isDiskFull(error.cause);
}

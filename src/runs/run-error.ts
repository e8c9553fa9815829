import { UserError } from "../errors.js";

/** A problem with a run folder. */
export class RunError extends UserError {
  override readonly name = "RunError";
}

/** The text of an operating-system error, with a remedy if one is known. */
export function explainIo(error: unknown, path: string): string {
  const code = (error as NodeJS.ErrnoException).code;
  const remedies: Readonly<Record<string, string>> = {
    ENOSPC: "the disk is full: free some space, or name a folder on another disk",
    EFBIG: "the file grew past the limit set for this process (ulimit -f): raise it",
    EDQUOT: "the disk quota is used up: free some space, or name a folder on another disk",
    EACCES: "no permission: choose a folder that you may write to",
    EROFS: "the file system is read-only: choose another folder",
    ENOENT: "it does not exist",
    ENOTDIR: "a part of the path is a file, not a folder",
    EISDIR: "it is a folder, not a file",
  };
  const reason = code === undefined ? undefined : remedies[code];
  return `${path}: ${reason ?? (error instanceof Error ? error.message : String(error))}`;
}

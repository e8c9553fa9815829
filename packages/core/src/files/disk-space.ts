import { existsSync } from "node:fs";
import { statfs } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { UserError } from "../errors.js";

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

/**
 * Temporary files and folders that name their writer, so that what a killed process left behind is
 * removed, and what another is still writing is not.
 */
import { randomBytes } from "node:crypto";
import { readdirSync, rmSync } from "node:fs";
import { join, resolve } from "node:path";
import { ownIdentity, stateOfTag, tagOf } from "../processes/process-alive.js";

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

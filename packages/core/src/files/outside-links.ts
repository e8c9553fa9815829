/** Symbolic links that lead out of a folder: what is read or written through them is not the folder's. */
import { readdirSync, readlinkSync, realpathSync } from "node:fs";
import { dirname, join, relative, resolve, sep } from "node:path";

/** A link, and the absolute path that it leads to. */
export interface OutsideLink {
  /** Within the folder. */
  readonly path: string;
  readonly target: string;
}

/** The links of a folder, at any depth, that lead out of it. */
export function linksOutOf(folder: string): readonly OutsideLink[] {
  const root = realpathSync(folder);
  return readdirSync(root, { recursive: true, withFileTypes: true }).flatMap((entry) => {
    if (!entry.isSymbolicLink()) return [];
    const link = join(entry.parentPath, entry.name);
    const target = targetOf(link);
    return target.startsWith(root + sep) ? [] : [{ path: relative(root, link), target }];
  });
}

/** What is not there yet would be made by writing through the link. */
function targetOf(link: string): string {
  try {
    return realpathSync(link);
  } catch {
    return resolve(dirname(link), readlinkSync(link));
  }
}

/** The run folders below a folder. */
import { type Dirent, readdirSync } from "node:fs";
import { join } from "node:path";
import { hasManifest } from "@pawl/core/runs/manifest.js";

/** Runs lie a few folders deep; a whole disk is not searched. */
const DEEPEST = 4;
/** Folders that are looked into. */
const MOST_FOLDERS = 20_000;

/**
 * The paths of runs relative to the root, with `/`; "" if the root is a run itself. Symbolic links
 * and hidden folders are not followed.
 */
export function findRuns(root: string): readonly string[] {
  if (hasManifest(root)) return [""];
  const found: string[] = [];
  let open: readonly string[] = [""];
  let looked = 0;
  for (let depth = 0; depth < DEEPEST && open.length > 0; depth++) {
    const next: string[] = [];
    for (const path of open) {
      if (++looked > MOST_FOLDERS) return found;
      for (const entry of entriesOf(join(root, path))) {
        if (!entry.isDirectory() || /^\.|^node_modules$/.test(entry.name)) continue;
        const below = path === "" ? entry.name : `${path}/${entry.name}`;
        (hasManifest(join(root, below)) ? found : next).push(below);
      }
    }
    open = next;
  }
  return found;
}

function entriesOf(folder: string): readonly Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch {
    // Removed since it was listed, or not ours to read.
    return [];
  }
}

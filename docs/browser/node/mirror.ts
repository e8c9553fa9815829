/** Copies of a folder in another worker: what has changed there, and the same changes here. */
import { changed, content, files, made, mkdirSync, rmSync } from "./files.js";
import { dirname } from "./paths.js";

/** A file as another worker is told of it; one that is gone has no bytes. */
export interface Change {
  readonly path: string;
  readonly ino: number;
  readonly bytes?: Uint8Array;
}

/** What has changed below a folder since the last call. */
export function changesBelow(folder: string): () => readonly Change[] {
  let before = new Map<string, string>();
  return () => {
    const now = new Map<string, string>();
    const changes: Change[] = [];
    for (const [path, file] of files) {
      if (!path.startsWith(`${folder}/`)) continue;
      const stamp = `${file.ino} ${file.version}`;
      now.set(path, stamp);
      if (before.get(path) !== stamp)
        changes.push({ path, ino: file.ino, bytes: content(file).slice() });
    }
    for (const path of before.keys()) if (!now.has(path)) changes.push({ path, ino: 0 });
    before = now;
    return changes;
  };
}

/** Makes the same changes here. */
export function applyChanges(changes: readonly Change[]): void {
  for (const { path, ino, bytes } of changes) {
    if (bytes === undefined) {
      rmSync(path, { force: true });
      continue;
    }
    mkdirSync(dirname(path), { recursive: true });
    const known = files.get(path);
    if (known?.ino !== -ino) files.set(path, made(bytes, -ino));
    else {
      Object.assign(known, { bytes, size: bytes.length });
      changed(known);
    }
  }
}

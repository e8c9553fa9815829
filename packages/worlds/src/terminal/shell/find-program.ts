/** Finds what a name runs: a program on the path, or a script. */
import { absolute, lookUp, type Stat } from "./file-system.js";
import { type Shell, textOf } from "./shell.js";

/** Where programs are looked for without PATH. */
const DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin";

/** Where a name leads, by the path; names with slashes are paths themselves. */
export function findProgram(shell: Shell, name: string): { path: string; stat: Stat } | undefined {
  const { fs } = shell.machine;
  if (name.includes("/")) {
    const path = absolute(shell.folder, name);
    const stat = lookUp(fs, path);
    return stat && { path, stat };
  }
  for (const folder of (textOf(shell, "PATH") ?? DEFAULT_PATH).split(":")) {
    const path = `${folder === "" ? "." : folder}/${name}`;
    const stat = lookUp(fs, absolute(shell.folder, path));
    if (stat?.kind === "file" && (stat.mode & 0o111) !== 0) return { path, stat };
  }
  return undefined;
}

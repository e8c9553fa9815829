/** Paths that stay inside the folder that is shown, whatever a request or a symbolic link says. */
import { lstatSync, realpathSync } from "node:fs";
import { join, sep } from "node:path";
import { HttpError } from "@pawl/core/http/http-server.js";

/** The real path of something below the root; anything else does not exist for the page. */
export function pathInside(root: string, path: string): string {
  const parts = path.split("/");
  const odd = (part: string): boolean => part === "" || part === "." || part === "..";
  // biome-ignore lint/suspicious/noControlCharactersInRegex: exactly these are refused
  if (path !== "" && (parts.some(odd) || /[\\\u0000]/.test(path))) throw missing(path);
  try {
    const base = realpathSync.native(root);
    const real = path === "" ? base : realpathSync.native(join(base, ...parts));
    if (real === base || real.startsWith(base.endsWith(sep) ? base : base + sep)) return real;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (!["ENOENT", "ENOTDIR", "ELOOP", "EACCES", "ENAMETOOLONG"].includes(code ?? "")) throw error;
  }
  throw missing(path);
}

const missing = (path: string): HttpError =>
  new HttpError(404, `there is no ${JSON.stringify(path.slice(0, 200))} here`);

/** Refuses a file of a run that is a link to elsewhere; one that is missing is no fault. */
export function checkFile(root: string, run: string, name: string): void {
  checkLink(root, run, name, lstatSync(join(pathInside(root, run), name), NO_THROW));
}

/** As `checkFile`, for a file whose status is known, in a folder that is inside. */
export function checkLink(
  root: string,
  run: string,
  name: string,
  status: { isSymbolicLink(): boolean } | undefined,
): void {
  if (status?.isSymbolicLink()) pathInside(root, run === "" ? name : `${run}/${name}`);
}

const NO_THROW = { throwIfNoEntry: false } as const;

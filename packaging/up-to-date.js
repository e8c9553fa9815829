/** Builds leave alone what is built already: a suite, its slow part and every benchmark begin with one. */
import { existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";

const newest = (path) =>
  statSync(path).isDirectory()
    ? Math.max(
        ...readdirSync(path, { recursive: true }).map((name) => statSync(join(path, name)).mtimeMs),
      )
    : statSync(path).mtimeMs;

/** Whether a file is newer than all of these files, and those in these folders. */
export function isUpToDate(built, inputs) {
  if (!existsSync(built)) return false;
  const { mtimeMs } = statSync(built);
  return inputs.every((path) => !existsSync(path) || newest(path) < mtimeMs);
}

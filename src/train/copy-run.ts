/** Copies a run, to resume the copy and leave the original alone. */
import { cpSync, existsSync, mkdirSync, readdirSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { POINTER_FILE } from "../engine/engine.js";
import { explainIo } from "../io-error.js";
import { readManifest, writeManifest } from "../runs/manifest.js";
import { RunError } from "../runs/run-error.js";
import { requireFree } from "../runs/run-lock.js";

/** Copies a run that no process is writing to into a new or empty folder. */
export function copyRun(from: string, to: string, force = false): void {
  checkCopy(from, to, force);
  try {
    mkdirSync(dirname(to), { recursive: true });
    cpSync(from, to, { recursive: true, filter: (path) => !/^lock(\.|$)/.test(basename(path)) });
  } catch (error) {
    throw new RunError(`could not copy ${from} to ${explainIo(error, to)}`, { cause: error });
  }
  writeManifest(to, { ...readManifest(from), copiedFrom: from });
}

/** Refuses a copy that cannot be made or resumed. */
export function checkCopy(from: string, to: string, force: boolean): void {
  readManifest(from);
  requireFree(from, { force });
  if (existsSync(to) && readdirSync(to).length > 0)
    throw new RunError(`${to} is not empty: a copy of ${from} needs a folder of its own`);
  const pointer = pointers(from)[0];
  if (pointer !== undefined)
    throw new RunError(
      `${from} cannot be copied: ${pointer} points to an engine server, which keeps weights for one run only. Resume without --out.`,
    );
}

function pointers(folder: string): readonly string[] {
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((path) => basename(path) === POINTER_FILE)
    .map((path) => join(folder, path));
}

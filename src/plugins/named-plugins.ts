/**
 * The plugins that this user has named on this machine, by their path and their hash.
 *
 * A run folder names code by its path. If it came from someone else, that code may be anything, so
 * a run's plugin is loaded by itself only if it was named before, on a command line or in a
 * configuration: with this content, and in this place. Elsewhere the same module would import other
 * packages.
 */
import { appendFileSync, mkdirSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import type { PluginFile } from "../loaded-plugins.js";

const folder = (): string => join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "pawl");
const list = (): string => join(folder(), "known-plugins");

/** Whether a plugin with this content was named before, in this place. */
export function wasNamed({ sha256, path }: PluginFile): boolean {
  return read().includes(`${sha256} ${path}`);
}

/** Notes that a plugin was named. If that cannot be written, it must be named again next time. */
export function rememberPlugin({ sha256, path }: PluginFile): void {
  if (wasNamed({ sha256, path })) return;
  try {
    mkdirSync(folder(), { recursive: true, mode: 0o700 });
    appendFileSync(list(), `${sha256} ${path}\n`, { mode: 0o600 });
  } catch {
    // A read-only home: nothing is remembered.
  }
}

function read(): readonly string[] {
  try {
    return readFileSync(list(), "utf8").split("\n");
  } catch {
    return [];
  }
}

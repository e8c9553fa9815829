/** The plugins that a recorded run was made with. */
import { appendFileSync, existsSync, mkdirSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { basename, join } from "node:path";
import { loadedPlugins, type PluginFile } from "@pawl/core/loaded-plugins.js";
import { sealedManifest } from "@pawl/core/runs/manifest.js";
import { RunError } from "@pawl/core/runs/run-error.js";
import { hashPlugin } from "./source.js";

// The plugins that this user has named on this machine, by their path and their hash.
//
// A run folder names code by its path. If it came from someone else, that code may be anything, so
// a run's plugin is loaded by itself only if it was named before, on a command line or in a
// configuration: with this content, and in this place. Elsewhere the same module would import other
// packages.

const folder = (): string => join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "pawl");
const list = (): string => join(folder(), "known-plugins");

/** Whether a plugin with this content was named before, in this place. */
function wasNamed({ sha256, path }: PluginFile): boolean {
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

/**
 * Loads the plugins of a run, unless the user has named others in their place. A plugin that is
 * gone, has changed or is unknown here is refused, until it is named. Returns what to tell the user.
 */
export async function loadPluginsOf(run: string): Promise<readonly string[]> {
  const notices: string[] = [];
  for (const recorded of sealedManifest(run).plugins ?? []) {
    const named = loadedPlugins().find((plugin) => isMeant(plugin, recorded));
    if (named === undefined) {
      refuse(run, recorded);
      const { loadPlugin } = await import("./load.js");
      await loadPlugin(recorded.path);
    } else if (named.sha256 !== recorded.sha256)
      notices.push(
        `the plugin ${named.path} has changed since it was recorded in ${run} (${short(recorded)} then, ${short(named)} now): its numbers may differ`,
      );
  }
  return notices;
}

/** Whether a plugin that was named stands for the recorded one: the same file, moved or changed. */
function isMeant(plugin: PluginFile, recorded: PluginFile): boolean {
  return (
    plugin.path === recorded.path ||
    plugin.sha256 === recorded.sha256 ||
    basename(plugin.path) === basename(recorded.path)
  );
}

function refuse(run: string, { path, sha256 }: PluginFile): void {
  const made = `${run} was made with the plugin ${path}`;
  if (!existsSync(path))
    throw new RunError(
      `${made}, which is not there: put it back, or say where it is now with --plugin FILE`,
    );
  // Nothing of a file is read before its user has named it.
  if (!wasNamed({ path, sha256 }))
    throw new RunError(
      `${made}, which you have not used on this machine before. It is code, and runs with your rights: read it, then name it with --plugin ${path}`,
    );
  if (hashPlugin(path) !== sha256)
    throw new RunError(
      `${made}, which has changed since: to go on with it as it is now, name it with --plugin ${path}`,
    );
}

const short = ({ sha256 }: PluginFile): string => sha256.slice(0, 12);

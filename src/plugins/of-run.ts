/** The plugins that a recorded run was made with. */
import { existsSync } from "node:fs";
import { basename } from "node:path";
import { loadedPlugins, type PluginFile } from "../loaded-plugins.js";
import { sealedManifest } from "../runs/manifest.js";
import { RunError } from "../runs/run-error.js";
import { wasNamed } from "./named-plugins.js";
import { hashPlugin } from "./source.js";

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

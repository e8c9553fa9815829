/** Loads plugins: runs their modules and registers what they add. */
import { existsSync } from "node:fs";
import { basename, extname, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { type Agent, isAgent } from "@pawl/agents/agent.js";
import { agentKind } from "@pawl/agents/agent-kind.js";
import { ConfigError } from "@pawl/core/config/config-error.js";
import { UserError } from "@pawl/core/errors.js";
import { addLoadedPlugin, type LoadedPlugin, loadedPlugins } from "@pawl/core/loaded-plugins.js";
import { importModule, MODULE_ENDINGS } from "@pawl/core/module-loader.js";
import { builtFile } from "@pawl/core/processes/calls.js";
import * as zod from "zod";
import { type Plugin, registerPlugin } from "./plugin.js";
import { hashPlugin } from "./source.js";

/** Loads a plugin, once per process; the error of a bad one names its file. */
export async function loadPlugin(file: string): Promise<LoadedPlugin> {
  const path = resolve(file);
  const known = loadedPlugins().find((one) => one.path === path);
  if (known !== undefined) return known;
  const { sha256, given } = await loadDefault(file, "plugin");
  try {
    const parts: unknown = isAgent(given) ? asPlugin(given, path) : given;
    registerPlugin(parts);
    const environments = (parts.environments ?? []).map(({ name }) => name);
    const plugin = { path, sha256, environments };
    addLoadedPlugin(plugin);
    return plugin;
  } catch (error) {
    throw badModule(file, "plugin", error);
  }
}

/** The default export of a user's module, and its hash; `what` it is, for errors. */
export async function loadDefault(
  file: string,
  what: string,
): Promise<{ readonly sha256: string; readonly given: unknown }> {
  const path = resolve(file);
  if (!existsSync(path))
    throw new ConfigError(
      `${what} ${file}: there is no such file; expected a module, such as ./guess.ts`,
    );
  if (!MODULE_ENDINGS.includes(extname(path)))
    throw new ConfigError(
      `${what} ${file}: expected a file that ends in ${MODULE_ENDINGS.join(", ")}`,
    );
  const sha256 = hashPlugin(path);
  try {
    // A plugin must get the very modules that run it.
    const pawl = await import(pathToFileURL(builtFile("index")).href);
    const module = await importModule(path, { pawl, zod });
    return { sha256, given: module.default };
  } catch (error) {
    throw badModule(file, what, error);
  }
}

function badModule(file: string, what: string, error: unknown): ConfigError {
  const why =
    error instanceof UserError ? error.message : `it failed while loading: ${reason(error)}`;
  return new ConfigError(`${what} ${file}: ${why}`, { cause: error });
}

/** An agent adds an environment with its name, or that of its file. */
function asPlugin(agent: Agent, path: string): Plugin {
  const words = basename(path, extname(path))
    .toLowerCase()
    .split(/[^a-z0-9]+/);
  return { environments: [agentKind(agent, words.filter((word) => word !== "").join("-"))] };
}

const reason = (error: unknown): string => (error instanceof Error ? error.message : String(error));

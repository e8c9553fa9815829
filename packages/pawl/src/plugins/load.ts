/** Loads plugins: runs their modules and registers what they add. */

import { createHash } from "node:crypto";
import { existsSync, statSync } from "node:fs";
import { basename, dirname, extname, join, relative, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { type Agent, isAgent } from "@pawl/agents/agent.js";
import { agentKind } from "@pawl/agents/agent-kind.js";
import { ConfigError } from "@pawl/core/config/config-error.js";
import { UserError } from "@pawl/core/errors.js";
import { readRegular, readRegularText } from "@pawl/core/files/regular-file.js";
import { addLoadedPlugin, type LoadedPlugin, loadedPlugins } from "@pawl/core/loaded-plugins.js";
import { importModule, MODULE_ENDINGS } from "@pawl/core/module-loader.js";
import { builtFile } from "@pawl/core/processes/calls.js";
import * as zod from "zod";
import { type Plugin, registerPlugin } from "./plugin.js";

// A plugin's files on disk, and their hash.

const IMPORT = /(?:\bfrom|\bimport|\brequire)\s*\(?\s*["'](\.{1,2}\/[^"']+)["']/g;

/**
 * SHA-256 over a module and everything that it imports by relative paths. What comes from packages
 * is not part of it.
 */
export function hashPlugin(path: string): string {
  const hash = createHash("sha256");
  for (const file of filesOf(path)) {
    // The module itself may be renamed.
    if (file !== path) hash.update(`${relative(dirname(path), file)}\0`);
    hash.update(readRegular(file));
    hash.update("\0");
  }
  return hash.digest("hex");
}

function filesOf(entry: string): readonly string[] {
  const found = new Set([entry]);
  for (const file of found) {
    if (!MODULE_ENDINGS.includes(extname(file))) continue;
    for (const [, target] of readRegularText(file).matchAll(IMPORT)) {
      const there = resolveImport(join(dirname(file), target!));
      if (there !== undefined) found.add(there);
    }
  }
  const [first, ...others] = found;
  return [first!, ...others.sort()];
}

/** The file that an import means: as written, TypeScript for JavaScript, or without an ending. */
function resolveImport(path: string): string | undefined {
  const bare = path.replace(/\.m?js$/, "");
  const names = [
    path,
    ...["", "/index"].flatMap((part) => MODULE_ENDINGS.map((end) => `${bare}${part}${end}`)),
  ];
  return names.find((name) => existsSync(name) && statSync(name).isFile());
}

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

/**
 * The plugins of a command: named with --plugin, in the configuration, as what the command is
 * about, or recorded in a run that the command reads.
 */
import { dirname, extname, resolve } from "node:path";
import { ConfigError } from "@pawl/core/config/config-error.js";
import type { ConfigLayer } from "@pawl/core/config/resolve.js";
import type { LoadedPlugin } from "@pawl/core/loaded-plugins.js";
import { MODULE_ENDINGS } from "@pawl/core/module-loader.js";
import { hasManifest } from "@pawl/core/runs/manifest.js";
import { textsIn } from "@pawl/core/trust/reach.js";
import { loadPluginsOf, rememberPlugin } from "../plugins/of-run.js";
import type { Command } from "./command.js";
import { type Io, warn } from "./io.js";

/** What a command line gives before its settings are known. */
export interface GivenPlugins {
  readonly command: Command;
  /** Named with --plugin. */
  readonly paths: readonly string[];
  /** The rest of the line. */
  readonly args: readonly string[];
  readonly file: ConfigLayer | undefined;
}

/**
 * Loads the plugins, so that the settings can name what they add. Returns the line and the
 * configuration without them.
 */
export async function loadCommandPlugins(
  { command, paths, args, file }: GivenPlugins,
  io: Io,
): Promise<{ readonly args: readonly string[]; readonly file: ConfigLayer | undefined }> {
  const inFile = file === undefined ? { paths: [], layer: undefined } : takePlugins(file);
  for (const path of [...inFile.paths, ...paths]) await loadNamed(path);
  const named = command.takesAgent ? takeAgent(args) : { args, agent: undefined };
  const about = command.takesPlugin ? args.find(isModule) : named.agent;
  const line = about === undefined ? args : await aboutPlugin(about, named.args);
  const { plugins = "load" } = command;
  if ((typeof plugins === "string" ? plugins : plugins(args)) === "load")
    for (const run of runsNamedIn(args, file))
      for (const notice of await loadPluginsOf(run)) warn(io, notice);
  return { args: command.takesEnv ? namedEnv(line) : line, file: inFile.layer };
}

/** Loads a plugin that the user has named. Most commands have none, and need not load the loader. */
async function loadNamed(path: string): Promise<LoadedPlugin> {
  const { loadPlugin } = await import("../plugins/load.js");
  const plugin = await loadPlugin(path);
  rememberPlugin(plugin);
  return plugin;
}

/** The line with --env for an environment that is named first. */
function namedEnv(args: readonly string[]): readonly string[] {
  const [name, ...rest] = args;
  if (name === undefined || name.startsWith("-")) return args;
  if (rest.some(namesEnv))
    throw new ConfigError(`the environment is named twice: "${name}" and with --env`);
  return ["--env", name, ...rest];
}

const namesEnv = (arg: string): boolean => /^--env(\.name)?(=|$)/.test(arg);

/** The line without --agent FILE, and that file. */
function takeAgent(args: readonly string[]): { args: readonly string[]; agent?: string } {
  const at = args.findIndex((arg) => /^--agent(=|$)/.test(arg));
  if (at < 0) return { args };
  const attached = args[at]!.startsWith("--agent=")
    ? args[at]!.slice("--agent=".length)
    : undefined;
  const agent = attached ?? args[at + 1];
  if (agent === undefined || agent === "" || agent.startsWith("--"))
    throw new ConfigError("--agent: expected a file, such as ./agent.ts");
  const rest = args.toSpliced(at, attached === undefined ? 2 : 1);
  if (rest.some((arg) => /^--agent(=|$)/.test(arg)))
    throw new ConfigError("--agent: given twice; expected one agent's file");
  return { args: rest, agent };
}

/** The `plugins` of a configuration, relative to its file, and the configuration without them. */
function takePlugins(file: ConfigLayer): { paths: readonly string[]; layer: ConfigLayer } {
  const { plugins = [], ...content } = file.content;
  if (!Array.isArray(plugins) || !plugins.every((path) => typeof path === "string"))
    throw new ConfigError(
      `${file.path}: plugins: expected a list of files, such as ["./guess.ts"], got ${JSON.stringify(plugins)}`,
    );
  return {
    paths: plugins.map((path: string) => resolve(dirname(file.path), path)),
    layer: { path: file.path, content },
  };
}

const isModule = (arg: string): boolean =>
  !arg.startsWith("-") && MODULE_ENDINGS.includes(extname(arg));

/** The line of a command that is about a plugin's environment, with that environment's name. */
async function aboutPlugin(path: string, args: readonly string[]): Promise<readonly string[]> {
  const plugin = await loadNamed(path);
  const rest = args.filter((arg) => arg !== path);
  if (rest.some(namesEnv)) return rest;
  const [name, ...others] = plugin.environments;
  if (name === undefined)
    throw new ConfigError(`plugin ${path} adds no environment; expected environments: [ … ]`);
  if (others.length > 0)
    throw new ConfigError(
      `plugin ${path} adds several environments: choose one with --env, of ${plugin.environments.join(", ")}`,
    );
  return [...rest, "--env", name];
}

/** The line without the folder to write: what a failed run left there has no say. */
const withoutOut = (args: readonly string[]): readonly string[] =>
  args.filter((arg, i) => !arg.startsWith("--out=") && args[i - 1] !== "--out");

/** The runs among the folders that a line or a file names, or that such folders are in. */
export function runsNamedIn(
  args: readonly string[],
  file: ConfigLayer | undefined,
): readonly string[] {
  const folders = [...withoutOut(args), ...textsIn(file?.content)]
    .flatMap((text) => text.slice(text.startsWith("--") ? text.indexOf("=") + 1 : 0).split(","))
    .filter((text) => text !== "" && !text.startsWith("--") && text.length < LONGEST_PATH);
  const runs = folders.flatMap((folder) => {
    const path = resolve(folder);
    const run = [path, dirname(path), dirname(dirname(path))].find(hasManifest);
    return run === undefined ? [] : [run === path ? folder : run];
  });
  return [...new Set(runs)];
}

const LONGEST_PATH = 4096;

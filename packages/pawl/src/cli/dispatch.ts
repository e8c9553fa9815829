/**
 * The command line: finds the command, reads its settings, runs it, and turns errors into exit
 * codes.
 */
import "@pawl/models/no-telemetry.js";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { ConfigError } from "@pawl/core/config/config-error.js";
import { readConfigFile } from "@pawl/core/config/config-file.js";
import {
  type ConfigLayer,
  givenIn,
  parseFlags,
  placeOf,
  resolveConfig,
} from "@pawl/core/config/resolve.js";
import { flagOf, SHORT_KEY, settingsOf, shortOf } from "@pawl/core/config/settings.js";
import { type SettingsTree, valueAt } from "@pawl/core/config/settings-tree.js";
import { UserError } from "@pawl/core/errors.js";
import { writeError } from "@pawl/core/files/io-error.js";
import { loadedPlugins } from "@pawl/core/loaded-plugins.js";
import { importModule } from "@pawl/core/module-loader.js";
import { plainText, shellQuoted } from "@pawl/core/plain-text.js";
import { endedByEscaped } from "@pawl/core/processes/escaped-errors.js";
import { sealedManifest } from "@pawl/core/runs/manifest.js";
import { didYouMean } from "@pawl/core/text/nearest.js";
import {
  askConsent,
  linksOutOf,
  requireConsent,
  requireOwnFiles,
} from "@pawl/core/trust/consent.js";
import { withoutSecretSettings } from "@pawl/core/trust/secret-settings.js";
import { packageFolder } from "@pawl/core/version.js";
import { type Call, type Command, exitCodes, type Peek } from "./command.js";
import {
  type CommandEntry,
  findCommand,
  loadCommands,
  loadCommandWorlds,
} from "./command-entry.js";
import { loadCommandPlugins, runsNamedIn } from "./command-plugins.js";
import { commands } from "./commands.js";
import { commandHelp, familyHelp, programHelp } from "./help.js";
import { type Io, note, print } from "./io.js";

/** The settings of `recipes/NAME.ts`: its default export, or the one of its own name. */
async function namedRecipe(name: string, configPath: string | undefined): Promise<ConfigLayer> {
  if (configPath !== undefined)
    throw new ConfigError(
      "--recipe and --config are both a complete description: leave one of them out.",
    );
  const folder = join(packageFolder(), "recipes");
  const file = `${name}.ts`;
  const names = readdirSync(folder).map((one) => one.replace(/\.ts$/, ""));
  if (!names.includes(name) || !existsSync(join(folder, file)))
    throw new ConfigError(
      `--recipe: there is no recipe "${name}".${didYouMean(name, names)} There are ${names.join(", ")}; --config FILE takes a file.`,
    );
  const module = await importModule(join(folder, file));
  const content = module.default ?? module[camelCase(name)];
  if (typeof content !== "object" || content === null)
    throw new ConfigError(
      `--recipe ${name}: recipes/${file} is no recipe by itself; pawl train takes it where it fits`,
    );
  return { path: `recipes/${file}`, content: content as SettingsTree };
}

const camelCase = (name: string): string =>
  name.replace(/-(.)/g, (_, letter: string) => letter.toUpperCase());

/** Runs one command line and returns its exit code. */
export async function main(args: readonly string[], io: Io, signal: AbortSignal): Promise<number> {
  try {
    return await dispatch(args, io, signal);
  } catch (error) {
    if (signal.aborted) return exitCodes.interrupted;
    note(io, `${io.colors.red("error:")} ${plainText(explain(error, io))}`);
    return error instanceof ConfigError ? exitCodes.usage : exitCodes.failed;
  }
}

async function dispatch(args: readonly string[], io: Io, signal: AbortSignal): Promise<number> {
  const command = await findCommand(commands, args)?.load();
  if (command === undefined) {
    const words = args.filter((arg) => !HELP.includes(arg));
    if (words.length === args.length && words.length > 0) throw unknownCommand(args);
    print(io, await helpAbout(words, io));
    return exitCodes.done;
  }
  const rest = args.slice(command.name.split(" ").length);
  const globals = takeGlobals(rest, command);
  const { configPath } = globals;
  const file =
    globals.recipe !== undefined
      ? await namedRecipe(globals.recipe, configPath)
      : configPath === undefined
        ? undefined
        : { path: configPath, content: await readConfigFile(configPath) };
  const trusted = globals.trusted.map(sealedManifest);
  const named = [
    globals.args,
    file?.content,
    trusted.map(({ config, resumes }) => [config, resumes]),
    globals.trusted.flatMap(linksOutOf),
  ];
  const runs = runsNamedIn(globals.args, file);
  const stopAsking = askConsent(named, runs);
  try {
    runs.forEach(requireOwnFiles);
    const line = ["pawl", ...args].map(shellQuoted).join(" ");
    return await runCommand(command, globals, { line, file, io, signal });
  } finally {
    stopAsking();
  }
}

/** Reads the settings of a command and runs it. */
async function runCommand(
  command: Command,
  { paths, help, quiet, printConfig, dryRun, args: given, recipe }: Globals,
  {
    line,
    file: read,
    io,
    signal,
  }: Pick<Call<unknown>, "line" | "io" | "signal"> & {
    readonly file: ConfigLayer | undefined;
  },
): Promise<number> {
  // Before plugins: what these start when they are loaded fails before the command can take care of it.
  await loadCommandWorlds(command, [given, read?.content], runsNamedIn(given, read));
  const { args: flagArgs, file } = await loadCommandPlugins(
    { command, paths, args: given, file: read },
    io,
  );
  await loadCommandWorlds(command, [flagArgs, file?.content], runsNamedIn(flagArgs, file));
  const files = file === undefined ? [] : [file];
  const base = await command.base?.({ peek: peekInto(flagArgs, files), file });
  const layers =
    base !== undefined && (file === undefined || base.file === "over") ? [base, ...files] : files;
  const peek = peekInto(flagArgs, layers);
  if (help !== undefined) {
    print(io, commandHelp(command, peek, io, { topic: help === "" ? undefined : help, layers }));
    return exitCodes.done;
  }
  const schema = command.options(peek);
  const { positionals, flags } = parseFlags(flagArgs, settingsOf(schema));
  // An environment's name has become --env; one that comes later has not.
  const most = command.takesEnv ? 0 : (command.positionals?.split(" ").length ?? 0);
  if (positionals.length > most && !command.positionals?.includes("…")) {
    throw new ConfigError(
      `pawl ${command.name}: unexpected "${positionals.at(-1)}". Usage: pawl ${command.name} ${command.positionals ?? ""} [OPTIONS]`,
    );
  }
  const sources = { layers, flags };
  const config = resolveConfig(schema, sources);
  if (printConfig) {
    print(io, JSON.stringify(withoutSecretSettings(config).settings, undefined, 2));
    return exitCodes.done;
  }
  requireConsent(schema, config);
  const how = {
    given: givenIn(schema, flags, file),
    placeOf: (path: readonly string[]) => placeOf(path, sources),
  };
  if (dryRun) {
    if (command.check === undefined) throw new ConfigError(`pawl ${command.name} has no --dry-run`);
    const [says, ...more] = (await command.check(config, how)).split("\n");
    for (const text of [`${says}. Nothing was started.`, ...more]) print(io, text);
    return exitCodes.done;
  }
  const context = {
    config,
    positionals,
    line,
    recipe: layers[0]?.path,
    flags: [
      ...(file === undefined ? [] : [recipe === undefined ? "--config" : "--recipe"]),
      ...flags.map(({ setting }) => flagOf(setting.path)),
    ],
    ...how,
    io: quiet ? { ...io, quiet } : io,
  };
  const run = (stop: AbortSignal) => command.run({ ...context, signal: stop });
  // Without code of the user's, what escapes is a fault of ours, with its stack.
  return loadedPlugins().length === 0 ? run(signal) : endedByEscaped(signal, run);
}

/** `pawl help [FAMILY]`, or `pawl help COMMAND [all|WORD]`. */
async function helpAbout(words: readonly string[], io: Io): Promise<string> {
  const command = await findCommand(commands, words)?.load();
  if (command === undefined) {
    const family = words.length === 0 ? [] : await loadCommands(familyOf(words));
    return family.length > 0
      ? familyHelp(words, family, io)
      : programHelp(await loadCommands(commands), io);
  }
  await loadCommandWorlds(command, words);
  const [topic] = words.slice(command.name.split(" ").length);
  const peek = () => undefined;
  return commandHelp(command, peek, io, {
    topic,
    layers: [(await command.base?.({ peek, file: undefined })) ?? []].flat(),
  });
}

const HELP: readonly string[] = ["help", "--help", "-h"];

/** The commands whose names start with these words. */
function familyOf(words: readonly string[]): readonly CommandEntry[] {
  return commands.filter(({ name }) => name.startsWith(`${words.join(" ")} `));
}

/** Commands that have been renamed, for callers that still give the old name. */
const RENAMED: Readonly<Record<string, string>> = { "bench paw": "bench observations" };

function unknownCommand(args: readonly string[]): ConfigError {
  const names = commands.map((command) => command.name);
  const renamed = RENAMED[args.slice(0, 2).join(" ")];
  if (renamed !== undefined)
    return new ConfigError(
      `pawl ${args.slice(0, 2).join(" ")} is now called pawl ${renamed}; its folders are read as they are.`,
    );
  // As many words as name a family: for "wm eval fidelty" the first two.
  const words = [2, 1]
    .map((count) => args.slice(0, count))
    .find((some) => familyOf(some).length > 0);
  if (words !== undefined) {
    const next = new Set(familyOf(words).map(({ name }) => name.split(" ")[words.length]!));
    const given = args[words.length];
    const got = given === undefined ? "" : `, got "${given}".${didYouMean(given, next)}`;
    return new ConfigError(`pawl ${words.join(" ")} needs one of: ${[...next].join(", ")}${got}`);
  }
  return new ConfigError(
    `unknown command "${args[0]}".${didYouMean(args[0]!, names)} pawl --help lists them.`,
  );
}

/** The options that every command has, and the rest of the line. */
interface Globals {
  readonly configPath: string | undefined;
  /** A recipe of this package, in the place of a file. */
  readonly recipe: string | undefined;
  /** Plugins. */
  readonly paths: readonly string[];
  /** Runs whose settings count as given. */
  readonly trusted: readonly string[];
  /** What to show: `all`, a word to search for, or nothing in particular. */
  readonly help: string | undefined;
  readonly quiet: boolean;
  readonly printConfig: boolean;
  readonly dryRun: boolean;
  readonly args: readonly string[];
}

/** What the options that take something else than a file expect. */
const EXPECTED: Readonly<Record<string, string>> = {
  "--recipe": "the name of a recipe",
  "--trust": "a run folder",
};

/** Takes the options that every command has off the line. */
function takeGlobals(line: readonly string[], { ownDryRun }: Command): Globals {
  let configPath: string | undefined;
  let recipe: string | undefined;
  let help: string | undefined;
  let quiet = false;
  let printConfig = false;
  let dryRun = false;
  const paths: string[] = [];
  const trusted: string[] = [];
  const args: string[] = [];
  for (let i = 0; i < line.length; i++) {
    const arg = line[i]!;
    const [flag, attached] =
      /^(--config|--recipe|--plugin|--trust)(?:=(.*))?$/s.exec(arg)?.slice(1) ?? [];
    if (arg === "--") {
      args.push(...line.slice(i));
      break;
    }
    if (arg === "--help" || arg === "-h") {
      const next = line[i + 1];
      help = next === undefined || next.startsWith("-") ? "" : next;
      if (help !== "") i++;
    } else if (arg.startsWith("--help=")) help = arg.slice("--help=".length);
    else if (arg === "--quiet") quiet = true;
    else if (arg === "--print-config") printConfig = true;
    else if (arg === "--dry-run" && !ownDryRun) dryRun = true;
    else if (flag === undefined) args.push(arg);
    else {
      const path = attached ?? line[++i];
      if (path === undefined || path === "")
        throw new ConfigError(`${flag}: expected ${EXPECTED[flag] ?? "a file"}`);
      if (flag === "--config") configPath = path;
      else if (flag === "--recipe") recipe = path;
      else if (flag === "--trust") trusted.push(path);
      else paths.push(path);
    }
  }
  return { configPath, recipe, paths, trusted, help, quiet, printConfig, dryRun, args };
}

/** Looks up a setting on the raw command line, then in the raw layers, last one first. */
function peekInto(args: readonly string[], layers: readonly ConfigLayer[]): Peek {
  return (path) => {
    const flags = [`--${path}`, flagOf(path.split(".")), `--${shortOf(path)}`];
    for (const [i, arg] of args.entries()) {
      if (flags.includes(arg)) {
        // A flag without a value means true.
        const next = args[i + 1];
        return next === undefined || next.startsWith("--") ? "true" : next;
      }
      const equals = arg.indexOf("=");
      if (equals > 0 && flags.includes(arg.slice(0, equals))) return arg.slice(equals + 1);
    }
    const keys = path.split(".");
    const values = layers.map(({ content }) => {
      const parent = SHORT_KEY.test(keys.at(-1)!) ? valueAt(content, keys.slice(0, -1)) : undefined;
      return typeof parent === "string" ? parent : valueAt(content, keys);
    });
    return values.findLast((value) => typeof value === "string");
  };
}

/**
 * Errors meant for people are shown as they are; anything else is a bug and shows its stack trace.
 */
function explain(error: unknown, io: Io): string {
  if (!(error instanceof Error)) return String(error);
  const { path, dest } = error as { readonly path?: string; readonly dest?: string };
  const known = writeError(error, dest ?? path ?? "a file");
  if (known !== error) return explain(known, io);
  return error instanceof UserError && !io.env.PAWL_DEBUG
    ? error.message
    : (error.stack ?? error.message);
}

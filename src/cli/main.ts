#!/usr/bin/env node
/**
 * The command line: finds the command, reads its settings, runs it, and turns errors into exit
 * codes.
 */
import "../no-telemetry.js";
import { realpathSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { ConfigError } from "../config/config-error.js";
import { readConfigFile } from "../config/config-file.js";
import { parseFlags } from "../config/flags.js";
import { type ConfigLayer, placeOf, resolveConfig } from "../config/resolve.js";
import { SHORT_KEY, settingsOf, shortOf } from "../config/settings.js";
import { valueAt } from "../config/settings-tree.js";
import { UserError } from "../errors.js";
import { didYouMean } from "../text/nearest.js";
import { packageVersion } from "../version.js";
import { type Command, exitCodes, type Peek } from "./command.js";
import { loadCommandPlugins } from "./command-plugins.js";
import { commands } from "./commands.js";
import { commandHelp, familyHelp, programHelp } from "./help.js";
import { type Io, print, processIo } from "./io.js";

/** Runs one command line and returns its exit code. */
export async function main(args: readonly string[], io: Io, signal: AbortSignal): Promise<number> {
  try {
    return await dispatch(args, io, signal);
  } catch (error) {
    if (signal.aborted) return exitCodes.interrupted;
    io.stderr.write(`${io.colors.red("error:")} ${explain(error, io)}\n`);
    return error instanceof ConfigError ? exitCodes.usage : exitCodes.failed;
  }
}

async function dispatch(args: readonly string[], io: Io, signal: AbortSignal): Promise<number> {
  const [first = "help"] = args;
  if (["--version", "-v", "version"].includes(first)) {
    print(io, packageVersion());
    return exitCodes.done;
  }
  const command = findCommand(args);
  if (command === undefined) {
    const words = args.filter((arg) => !HELP.includes(arg));
    const asked = findCommand(words);
    if (words.length === args.length && words.length > 0) throw unknownCommand(args);
    const family = familyOf(words);
    if (asked !== undefined)
      print(
        io,
        commandHelp(asked, () => undefined, io),
      );
    else if (words.length > 0 && family.length > 0) print(io, familyHelp(words, family, io));
    else print(io, programHelp(commands, io));
    return exitCodes.done;
  }
  const rest = args.slice(command.name.split(" ").length);
  const { configPath, paths, help, args: given } = takeGlobals(rest);
  const read =
    configPath === undefined
      ? undefined
      : { path: configPath, content: await readConfigFile(configPath) };
  const { args: flagArgs, file } = await loadCommandPlugins(
    { command, paths, args: given, file: read },
    io,
  );
  const files = file === undefined ? [] : [file];
  const base = command.base?.({ peek: peekInto(flagArgs, files), file });
  const layers =
    base !== undefined && (file === undefined || base.file === "over") ? [base, ...files] : files;
  const peek = peekInto(flagArgs, layers);
  if (help) {
    print(io, commandHelp(command, peek, io));
    return exitCodes.done;
  }
  const schema = command.options(peek);
  const { positionals, flags } = parseFlags(flagArgs, settingsOf(schema));
  if (
    positionals.length > (command.positionals?.split(" ").length ?? 0) &&
    !command.positionals?.includes("…")
  ) {
    throw new ConfigError(
      `pawl ${command.name}: unexpected "${positionals.at(-1)}". Usage: pawl ${command.name} ${command.positionals ?? ""} [OPTIONS]`,
    );
  }
  const sources = { layers, flags };
  return command.run({
    config: resolveConfig(schema, sources),
    positionals,
    placeOf: (path) => placeOf(path, sources),
    io,
    signal,
  });
}

/** How long what a command left behind may keep its process alive. */
const LEFT_BEHIND_MS = 1000;

const HELP: readonly string[] = ["help", "--help", "-h"];

/** Commands have one to three words: take the longest name that the line starts with. */
function findCommand(args: readonly string[]): Command | undefined {
  const names = [3, 2, 1].map((words) => args.slice(0, words).join(" "));
  return names.flatMap((name) => commands.filter((command) => command.name === name))[0];
}

/** The commands whose names start with these words. */
function familyOf(words: readonly string[]): readonly Command[] {
  return commands.filter(({ name }) => name.startsWith(`${words.join(" ")} `));
}

function unknownCommand(args: readonly string[]): ConfigError {
  const names = commands.map((command) => command.name);
  // As many words as name a family: for "wm eval fidelty" the first two.
  const words = [2, 1]
    .map((count) => args.slice(0, count))
    .find((some) => familyOf(some).length > 0);
  if (words !== undefined) {
    const next = familyOf(words).map(({ name }) => name.split(" ")[words.length]!);
    return new ConfigError(
      `pawl ${words.join(" ")} needs one of: ${[...new Set(next)].join(", ")}`,
    );
  }
  return new ConfigError(
    `unknown command "${args[0]}".${didYouMean(args[0]!, names)} pawl --help lists them.`,
  );
}

/** Takes `--help`, `--config FILE` and `--plugin FILE`, which every command has, off the line. */
function takeGlobals(line: readonly string[]): {
  readonly configPath: string | undefined;
  readonly paths: readonly string[];
  readonly help: boolean;
  readonly args: readonly string[];
} {
  let configPath: string | undefined;
  let help = false;
  const paths: string[] = [];
  const args: string[] = [];
  for (let i = 0; i < line.length; i++) {
    const arg = line[i]!;
    const [flag, attached] = /^(--config|--plugin)(?:=(.*))?$/s.exec(arg)?.slice(1) ?? [];
    if (arg === "--help" || arg === "-h") help = true;
    else if (flag === undefined) args.push(arg);
    else {
      const path = attached ?? line[++i];
      if (path === undefined || path === "") throw new ConfigError(`${flag}: expected a file`);
      if (flag === "--config") configPath = path;
      else paths.push(path);
    }
  }
  return { configPath, paths, help, args };
}

/** Looks up a setting on the raw command line, then in the raw layers, last one first. */
function peekInto(args: readonly string[], layers: readonly ConfigLayer[]): Peek {
  return (path) => {
    const flags = [`--${path}`, `--${shortOf(path)}`];
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
  return error instanceof UserError && !io.env.PAWL_DEBUG
    ? error.message
    : (error.stack ?? error.message);
}

/** Whether this file was started, and not imported by a test. */
function startedDirectly(): boolean {
  const started = process.argv[1];
  return started !== undefined && realpathSync(started) === fileURLToPath(import.meta.url);
}

if (startedDirectly()) {
  const controller = new AbortController();
  const stop = (signal: NodeJS.Signals): void => {
    // The second Ctrl-C does not wait for anything. The signal itself ends the process: `exit`
    // would tear down ONNX Runtime in the middle of its work, which aborts with a C++ error.
    if (controller.signal.aborted) {
      process.emit("exit", exitCodes.interrupted);
      process.removeAllListeners(signal);
      process.kill(process.pid, signal);
    }
    controller.abort(new Error(`stopped by ${signal}`));
  };
  process.on("SIGINT", stop);
  process.on("SIGTERM", stop);
  // A reader that closes the pipe early (`pawl show | head`) is not an error.
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code === "EPIPE") process.exit(exitCodes.done);
    throw error;
  });
  process.exitCode = await main(process.argv.slice(2), processIo(), controller.signal);
  // A world that hangs may hold sockets and timers for ever, but the command is done.
  const leave = (): void => {
    if (process.stdout.writableLength > 0) setTimeout(leave, LEFT_BEHIND_MS).unref();
    else process.exit();
  };
  setTimeout(leave, LEFT_BEHIND_MS).unref();
}

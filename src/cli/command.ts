/** A command: its name, its settings and what it does. Help, completion and errors come from here. */
import type { z } from "zod";
import type { Io } from "./io.js";

/** Reads a setting before the schema is known, for example which environment's options to offer. */
export type Peek = (path: string) => string | undefined;

/** What a command is called with. */
export interface Call<Config> {
  readonly config: Config;
  readonly positionals: readonly string[];
  readonly io: Io;
  /** Aborted by Ctrl-C and by SIGTERM. */
  readonly signal: AbortSignal;
}

/** A command of the command line. */
export interface Command<Schema extends z.ZodObject = z.ZodObject> {
  /** One to three words, for example `env replay`. */
  readonly name: string;
  readonly summary: string;
  /** What follows the name, for example `RUN [EPISODE]`. */
  readonly positionals?: string;
  /** More than the summary, for `--help`. */
  readonly details?: string;
  /** The schema of its settings; it may depend on a setting that was already given. */
  options(peek: Peek): Schema;
  /** Settings that hold where no file is named: a recipe, by its name. */
  readonly recipe?: { readonly path: string; readonly content: Readonly<Record<string, unknown>> };
  /** The same, where what holds depends on a setting that was already given. It may refuse one beside a file. */
  base?(peek: Peek, configPath: string | undefined): Command["recipe"];
  /** A command line and what it does. */
  readonly examples: readonly (readonly [command: string, does: string])[];
  /** Returns the exit code. */
  run(call: Call<z.output<Schema>>): Promise<number>;
}

/** A command with the type of its settings inferred, in the form that a list of commands can hold. */
export function defineCommand<Schema extends z.ZodObject>(command: Command<Schema>): Command {
  return command as unknown as Command;
}

/** Exit codes, the same for every command. */
export const exitCodes = {
  done: 0,
  /** The command ran and the answer is no: mismatches, a failed run. */
  failed: 1,
  /** The command line or the configuration cannot be meant. */
  usage: 2,
  /** Stopped by Ctrl-C, as shells count it. */
  interrupted: 130,
} as const;

/** A command: its name, its settings and what it does. Help, completion and errors come from here. */
import type { z } from "zod";
import type { ConfigLayer } from "../config/resolve.js";
import type { Io } from "./io.js";

/** Reads a setting before the schema is known, for example which environment's options to offer. */
export type Peek = (path: string) => string | undefined;

/** What is given before the schema is known. */
export interface Given {
  /** Looks at the flags, then at the file. */
  readonly peek: Peek;
  /** The file that --config names. */
  readonly file: ConfigLayer | undefined;
}

/** Settings that hold below those that are given. */
export interface Base extends ConfigLayer {
  /**
   * What a file does to them. `over`: it changes single settings, as flags do; so of a checkpoint's own settings.
   * `instead`: it is a whole description and replaces them; so of a recipe, which would else leak into another's.
   */
  readonly file: "over" | "instead";
}

/** What a command is called with. */
export interface Call<Config> {
  readonly config: Config;
  readonly positionals: readonly string[];
  /** How people gave the setting at a path, for errors: `--groups`, or `run.yaml: groups`. */
  placeOf(path: readonly string[]): string;
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
  /** What lies below the settings that are given; it may refuse some of those. */
  base?(given: Given): Base | undefined;
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

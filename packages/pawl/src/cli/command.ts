/**
 * A command: its name, its settings and what it does. Help, completion and errors are derived from
 * it.
 */

import type { Applies, Given as GivenSettings } from "@pawl/core/config/applies.js";
import type { ConfigLayer } from "@pawl/core/config/resolve.js";
import type { z } from "zod";
import type { Io } from "./io.js";

/** Reads a setting before the schema is known, such as which environment's options to offer. */
export type Peek = (path: string) => string | undefined;

/** What is given before the schema is known. */
export interface Given {
  /** Looks at the flags first, then at the file. */
  readonly peek: Peek;
  /** The file given by --config. */
  readonly file: ConfigLayer | undefined;
}

/** Settings with lower priority than the given ones. */
export interface Base extends ConfigLayer {
  /**
   * How a file combines with them. `over`: the file changes single settings, as flags do; used for
   * a checkpoint's own settings. `instead`: the file is a complete description and replaces them;
   * used for recipes, which would otherwise leak into another recipe's settings.
   */
  readonly file: "over" | "instead";
}

/** The arguments of a command. */
export interface Call<Config> {
  readonly config: Config;
  readonly positionals: readonly string[];
  /** The command line as it was given, for records; quoted where a shell needs it. */
  readonly line: string;
  /** What the settings are based on: a recipe, a file, or another run. */
  readonly recipe: string | undefined;
  /** The flags that were given, as they are documented: `--groups`; `--config` if there is a file. */
  readonly flags: readonly string[];
  /** How the user gave the setting at a path, for errors: `--groups`, or `run.yaml: groups`. */
  placeOf(path: readonly string[]): string;
  /** Whether the user gave a setting. */
  readonly given: GivenSettings;
  readonly io: Io;
  /** Aborted by Ctrl-C and by SIGTERM. */
  readonly signal: AbortSignal;
}

/** A command of the command line. */
export interface Command<Schema extends z.ZodObject = z.ZodObject> {
  /** One to three words, such as `env replay`. */
  readonly name: string;
  readonly summary: string;
  /** What follows the name, such as `RUN [EPISODE]`. */
  readonly positionals?: string;
  /** More than the summary, for `--help`. */
  readonly details?: string;
  /** The settings that `--help` shows first, by their paths, where there are many. */
  readonly common?: readonly string[];
  /** Whether it can be about a plugin's environment: a file in the place of a name. */
  readonly takesPlugin?: boolean;
  /** Whether its first word is an environment's name, short for --env NAME. */
  readonly takesEnv?: boolean;
  /** Whether it can run an agent: --agent FILE stands for a plugin and its environment. */
  readonly takesAgent?: boolean;
  /**
   * What it does with the plugins of runs that it reads. `load` (the default): it needs what they
   * add. `none`: it only reads records, and runs nobody's code. It may depend on the line.
   */
  readonly plugins?: "load" | "none" | ((args: readonly string[]) => "load" | "none");
  /**
   * Which worlds it may open: `named`, those that its line, its file and the runs there name; `any`
   * (the default); or `none`, since it only reads records.
   */
  readonly worlds?: "named" | "any" | "none";
  /** The schema of its settings; it may depend on a setting that was already given. */
  options(peek: Peek): Schema;
  /** Lower-priority settings; may reject some of the given ones. */
  base?(given: Given): Base | undefined | Promise<Base | undefined>;
  /** Whether `--dry-run` is a setting of its own, which does more than check. */
  readonly ownDryRun?: boolean;
  /** Settings that have an effect only with others, for help. */
  applies?(): readonly Applies<never>[];
  /**
   * Refuses what cannot work, without starting it; says what would be done, and in further lines what
   * it would take. For `--dry-run`.
   */
  check?(
    config: z.output<Schema>,
    how: Pick<Call<z.output<Schema>>, "given" | "placeOf">,
  ): string | Promise<string>;
  /** A command line and what it does. */
  readonly examples: readonly (readonly [command: string, does: string])[];
  /** Returns the exit code. */
  run(call: Call<z.output<Schema>>): Promise<number>;
}

/** A command with the type of its settings inferred, in a form that a list of commands can hold. */
export function defineCommand<Schema extends z.ZodObject>(command: Command<Schema>): Command {
  return command as unknown as Command;
}

/** Exit codes, the same for every command. */
export const exitCodes = {
  done: 0,
  /** The command ran and the answer is no: mismatches, a failed run. */
  failed: 1,
  /** The command line or the configuration is invalid. */
  usage: 2,
  /** Stopped by Ctrl-C, as shells count it. */
  interrupted: 130,
} as const;

/** The settings of a study, given as flags like a command's: `--sft.epochs 2`. */

import { type ConfigLayer, parseFlags, resolveConfig } from "@pawl/core/config/resolve.js";
import { settingsOf } from "@pawl/core/config/settings.js";
import type { z } from "zod";

/** The settings by their schema, over those of a recipe, and what else was given. */
export function studySettings<S extends z.ZodObject>(
  schema: S,
  args: readonly string[],
  layers: readonly ConfigLayer[] = [],
): { readonly config: z.output<S>; readonly positionals: readonly string[] } {
  const { flags, positionals } = parseFlags(args, settingsOf(schema));
  return { config: resolveConfig(schema, { layers, flags }), positionals };
}

/** The value of a flag that decides which settings there are, such as `--env`. */
export function flagValue(args: readonly string[], flag: string): string | undefined {
  const at = args.indexOf(flag);
  return at < 0 ? undefined : args[at + 1];
}

/** What goes wrong on the way is said on standard error. */
export const onProblem = (message: string): void => {
  process.stderr.write(`${message}\n`);
};

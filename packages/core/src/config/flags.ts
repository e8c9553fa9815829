/** Command-line flags, parsed according to the settings of a schema. */
import { ConfigError } from "./config-error.js";
import { hintFor } from "./replaced.js";
import { coerce, type Setting, shortOf } from "./settings.js";

/** A given flag, with its setting and value. */
export interface GivenFlag {
  readonly setting: Setting;
  readonly value: unknown;
}

/** A parsed command line. */
export interface ParsedFlags {
  readonly positionals: readonly string[];
  readonly flags: readonly GivenFlag[];
}

/**
 * Splits a command line into positionals and flags; an unknown flag is an error that names the
 * nearest.
 */
export function parseFlags(args: readonly string[], settings: readonly Setting[]): ParsedFlags {
  const byFlag = new Map(settings.map((setting) => [setting.flag, setting]));
  // `--env household` is short for `--env.name household`.
  for (const setting of settings) {
    const short = shortOf(setting.flag);
    if (!byFlag.has(short)) byFlag.set(short, setting);
  }
  const positionals: string[] = [];
  const flags: GivenFlag[] = [];
  for (let i = 0; i < args.length; i++) {
    const arg = args[i]!;
    if (arg === "--") {
      positionals.push(...args.slice(i + 1));
      break;
    }
    if (!arg.startsWith("-") || arg === "-") {
      positionals.push(arg);
      continue;
    }
    const equals = arg.indexOf("=");
    const flag = equals < 0 ? arg : arg.slice(0, equals);
    const negated = byFlag.get(flag.replace(/^--no-/, "--"));
    const setting =
      byFlag.get(flag) ?? (flag.startsWith("--no-") && negated?.isSwitch ? negated : undefined);
    if (setting === undefined) {
      throw new ConfigError(`unknown option ${flag}.${hintFor(flag, byFlag.keys())}`);
    }
    const attached = equals < 0 ? undefined : arg.slice(equals + 1);
    if (setting.isSwitch) {
      const on = attached === undefined ? true : coerce(attached, setting.schema);
      if (typeof on !== "boolean")
        throw new ConfigError(`${flag}: expected true or false, got "${attached}"`);
      flags.push({ setting, value: flag === setting.flag ? on : !on });
      continue;
    }
    const text = attached ?? args[++i];
    if (text === undefined)
      throw new ConfigError(`${flag}: expected a value: ${flag} ${setting.placeholder}`);
    flags.push({ setting, value: coerce(text, setting.schema) });
  }
  return { positionals, flags };
}

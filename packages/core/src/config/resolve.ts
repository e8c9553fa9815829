/** Merges defaults, layers of settings and flags into one configuration, checked by its schema. */
import type { z } from "zod";
import { secretSettings, withoutSecretSettings } from "../trust/secret-settings.js";
import type { Given } from "./applies.js";
import { ConfigError } from "./config-error.js";
import { hintFor } from "./replaced.js";
import { coerce, flagOf, type Setting, SHORT_KEY, settingsOf, shortOf } from "./settings.js";
import { mergeTrees, type SettingsTree, valueAt, withValueAt } from "./settings-tree.js";

/** Settings from one source: a recipe, a run, a file. */
export interface ConfigLayer {
  /** The source, as error messages call it. */
  readonly path: string;
  readonly content: SettingsTree;
  /** The settings of a run: what it was recorded with holds, also where it would be refused today. */
  readonly recorded?: true;
}

/** Where the raw settings came from, so that an error can say where to fix it. */
export interface ConfigSources {
  /** Lowest priority first: later layers win. */
  readonly layers: readonly ConfigLayer[];
  /** Flags win over all layers. */
  readonly flags: readonly GivenFlag[];
}

/** The merged settings of all layers and flags, not yet checked. */
function mergeSources(schema: z.ZodObject, { layers, flags }: ConfigSources): SettingsTree {
  let merged: SettingsTree = {};
  for (const { content } of layers) merged = mergeTrees(merged, expandNames(schema, content));
  for (const { setting, value } of flags) merged = withValueAt(merged, setting.path, value);
  return merged;
}

/**
 * Checks the merged settings and fills in the defaults; every problem is reported with its place.
 */
export function resolveConfig<S extends z.ZodObject>(
  schema: S,
  sources: ConfigSources,
): z.output<S> {
  const merged = mergeSources(schema, sources);
  refuseSecrets(schema, sources);
  const parsed = schema.safeParse(merged, { reportInput: true });
  if (parsed.success) return parsed.data;
  const known = settingsOf(schema);
  const lines = parsed.error.issues.flatMap((issue) => explain(issue, sources, known));
  throw new ConfigError(lines.join("\n"));
}

/** Settings are recorded, so they must not hold passwords and keys; the value is not repeated. */
function refuseSecrets(schema: z.ZodObject, sources: ConfigSources): void {
  const layers = sources.layers.filter(({ recorded }) => recorded !== true);
  const [secret] = secretSettings(mergeSources(schema, { ...sources, layers }));
  if (secret !== undefined)
    throw new ConfigError(
      `${placeOf(secret.path, sources)}: ${secret.fix}. Settings are recorded with the run.`,
    );
}

/** `env: household` is short for `env: { name: household }` wherever the schema has such a name. */
function expandNames(schema: z.ZodObject, raw: SettingsTree): SettingsTree {
  let expanded = raw;
  for (const { path } of settingsOf(schema)) {
    const parent = path.slice(0, -1);
    if (!SHORT_KEY.test(path.at(-1)!) || parent.length === 0) continue;
    const name = valueAt(expanded, parent);
    if (typeof name === "string") expanded = withValueAt(expanded, path, name);
  }
  return expanded;
}

function explain(
  issue: z.core.$ZodIssue,
  sources: ConfigSources,
  known: readonly Setting[],
): string[] {
  const path = issue.path.map(String);
  if (issue.code === "unrecognized_keys") {
    return issue.keys.map((key) => {
      const full = [...path, key];
      const names = known.map((setting) => setting.path.join("."));
      return `${placeOf(full, sources)}: unknown setting.${hintFor(full.join("."), names)}`;
    });
  }
  if (issue.code === "invalid_union" && issue.errors.length === 0) {
    // No variant has that name. zod reports the whole object, but people look for the name.
    const name = (issue.input as SettingsTree)[path.at(-1)!];
    const choices =
      known.find((setting) => setting.path.join(".") === path.join("."))?.choices ?? [];
    return [
      `${placeOf(path, sources)}: expected ${quoteAll(choices)}, got ${JSON.stringify(name)}`,
    ];
  }
  // Text in place of a record is damaged JSON, in which keys cannot be found, so it is not repeated.
  const isDamaged = issue.code === "invalid_type" && issue.expected === "record";
  const given =
    issue.input === undefined || (isDamaged && typeof issue.input === "string")
      ? ""
      : `, got ${JSON.stringify(withoutSecretSettings(issue.input, path).settings)}`;
  return [
    `${placeOf(path, sources)}: ${expectation(issue)}${issue.code === "custom" ? "" : given}`,
  ];
}

/** `--groups` if a flag set it, `run.yaml: groups` if the file did, otherwise the flag to give. */
export function placeOf(path: readonly string[], { layers, flags }: ConfigSources): string {
  const whole = path.join(".");
  const given = flags.find(({ setting }) => `${whole}.`.startsWith(`${setting.path.join(".")}.`));
  if (given !== undefined) {
    const inside = path.slice(given.setting.path.length);
    return `${flagOf(given.setting.path)}${inside.length === 0 ? "" : `: ${inside.join(".")}`}`;
  }
  const said = layers.findLast(({ content }) => says(content, path));
  return said === undefined ? flagOf(path) : `${said.path}: ${path.join(".")}`;
}

/**
 * What the user gave: flags, and the settings of a file, unless a flag changes what decides about
 * them. Recipes and runs beneath are nobody's own words, and neither is a file with every group of
 * settings, as `--print-config` writes it.
 */
export function givenIn(
  schema: z.ZodObject,
  flags: readonly GivenFlag[],
  file: ConfigLayer | undefined,
): Given {
  const flagged = new Set(flags.map(({ setting }) => setting.path.join(".")));
  const groups = settingsOf(schema).flatMap(({ path }) => (path.length > 1 ? [path[0]!] : []));
  const content = file?.content ?? {};
  const isRecord = groups.every((group) => group in content);
  return (path, by) =>
    flagged.has(path) ||
    (!isRecord && says(content, path.split(".")) && !by.some((one) => flagged.has(one)));
}

function says(content: SettingsTree, path: readonly string[]): boolean {
  if (valueAt(content, path) !== undefined) return true;
  // `env: household` in a file is short for its name.
  return SHORT_KEY.test(path.at(-1)!) && typeof valueAt(content, path.slice(0, -1)) === "string";
}

const quoteAll = (values: readonly unknown[]): string =>
  values.map((value) => JSON.stringify(value)).join(" or ");

function expectation(issue: z.core.$ZodIssue): string {
  switch (issue.code) {
    case "invalid_type":
      if (issue.expected === "record" && typeof issue.input === "string")
        return 'expected JSON, such as {"name": …}, and this is none';
      return issue.input === undefined ? "required, but not given" : `expected a ${issue.expected}`;
    case "invalid_value":
      return `expected ${quoteAll(issue.values)}`;
    case "too_small":
      return `expected at ${issue.inclusive ? "least" : "least more than"} ${issue.minimum}`;
    case "too_big":
      return `expected at most ${issue.maximum}`;
    case "invalid_union": {
      const options = issue.errors.flatMap((errors) => errors.map(expectation));
      return options.length > 0 ? options.join(", or ") : issue.message;
    }
    default:
      return issue.message;
  }
}

/** A given flag, with its setting and value. */
interface GivenFlag {
  readonly setting: Setting;
  readonly value: unknown;
}

/** A parsed command line. */
interface ParsedFlags {
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

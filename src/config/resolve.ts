/** One configuration out of defaults, a file and flags, checked by its schema. */
import type { z } from "zod";
import { ConfigError } from "./config-error.js";
import type { GivenFlag } from "./flags.js";
import { hintFor } from "./replaced.js";
import { flagOf, type Setting, settingsOf } from "./settings.js";

/** Plain settings as a file holds them. */
export type RawConfig = Record<string, unknown>;

/** Where the raw settings came from, so that an error can say where to mend it. */
export interface ConfigSources {
  readonly file?: {
    readonly path: string;
    readonly content: Readonly<Record<string, unknown>>;
  };
  readonly flags: readonly GivenFlag[];
}

/** The settings of file and flags together, flags last; nothing is checked yet. */
export function mergeSources(sources: ConfigSources): RawConfig {
  const merged = structuredClone(sources.file?.content ?? {});
  for (const { setting, value } of sources.flags) setAt(merged, setting.path, value);
  return merged;
}

function setAt(target: RawConfig, path: readonly string[], value: unknown): void {
  let place = target;
  for (const key of path.slice(0, -1)) {
    const next = place[key];
    // `env: household` in the file and `--env.noise` as a flag belong together.
    if (typeof next === "string") place[key] = { name: next };
    else if (typeof next !== "object" || next === null) place[key] = {};
    place = place[key] as RawConfig;
  }
  place[path.at(-1)!] = value;
}

/** Checks the merged settings and fills in the defaults; every problem is named with its place. */
export function resolveConfig<S extends z.ZodObject>(
  schema: S,
  sources: ConfigSources,
): z.output<S> {
  const parsed = schema.safeParse(expandNames(schema, mergeSources(sources)), {
    reportInput: true,
  });
  if (parsed.success) return parsed.data;
  const known = settingsOf(schema);
  const lines = parsed.error.issues.flatMap((issue) => explain(issue, sources, known));
  throw new ConfigError(lines.join("\n"));
}

/** `env: household` is short for `env: { name: household }` wherever the schema has such a name. */
function expandNames(schema: z.ZodObject, raw: RawConfig): RawConfig {
  const named = new Set(
    settingsOf(schema)
      .filter(({ path }) => path.length === 2 && path[1] === "name")
      .map(({ path }) => path[0]!),
  );
  return Object.fromEntries(
    Object.entries(raw).map(([key, value]) => [
      key,
      named.has(key) && typeof value === "string" ? { name: value } : value,
    ]),
  );
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
      return `${place(full, sources)}: unknown setting.${hintFor(full.join("."), names)}`;
    });
  }
  if (issue.code === "invalid_union" && issue.errors.length === 0) {
    // No variant has that name: zod passes the whole object, people want the name.
    const name = (issue.input as RawConfig)[path.at(-1)!];
    const choices =
      known.find((setting) => setting.path.join(".") === path.join("."))?.choices ?? [];
    return [`${place(path, sources)}: expected ${quoteAll(choices)}, got ${JSON.stringify(name)}`];
  }
  const given = issue.input === undefined ? "" : `, got ${JSON.stringify(issue.input)}`;
  return [`${place(path, sources)}: ${expectation(issue)}${issue.code === "custom" ? "" : given}`];
}

/** `--groups` where a flag set it, `run.yaml: groups` where the file did, the flag to give otherwise. */
function place(path: readonly string[], sources: ConfigSources): string {
  const byFlag = sources.flags.some(({ setting }) => setting.path.join(".") === path.join("."));
  return byFlag || sources.file === undefined
    ? flagOf(path)
    : `${sources.file.path}: ${path.join(".")}`;
}

const quoteAll = (values: readonly unknown[]): string =>
  values.map((value) => JSON.stringify(value)).join(" or ");

function expectation(issue: z.core.$ZodIssue): string {
  switch (issue.code) {
    case "invalid_type":
      return issue.input === undefined
        ? "is needed and was not given"
        : `expected a ${issue.expected}`;
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

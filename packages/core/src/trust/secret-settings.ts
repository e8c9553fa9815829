/**
 * Settings are recorded with a run, sent to trackers and published, so they hold no keys: where a key
 * is needed, a setting names the environment variable that has it.
 */
import { existsSync } from "node:fs";
import { hasCredentials, isSecretName, looksLikeKey } from "./secrets.js";

/**
 * Placeholders in settings: `{name}`, and `{env:NAME}` for an environment variable, so that records
 * hold the variable's name instead of its value. `{{` and `}}` stand for braces.
 */

const PLACEHOLDER = /\{\{|\}\}|\{(env:)?([A-Za-z_]\w*)\}/g;

/** What stands in braces. */
interface Placeholder {
  readonly name: string;
  /** Whether it names an environment variable. */
  readonly isVariable: boolean;
}

/** The text with every placeholder replaced, in one pass: what replaces one is not read again. */
export function replacePlaceholders(text: string, value: (one: Placeholder) => string): string {
  return text.replace(PLACEHOLDER, (found, env: string | undefined, name: string | undefined) =>
    name === undefined ? found[0]! : value({ name, isVariable: env !== undefined }),
  );
}

/** The names in all `{env:NAME}` of a setting, at any depth, each once. */
export function environmentVariablesIn(value: unknown): readonly string[] {
  const names = new Set<string>();
  collect(value, names);
  return [...names];
}

function collect(value: unknown, names: Set<string>): void {
  if (typeof value === "string")
    replacePlaceholders(value, ({ name, isVariable }) => {
      if (isVariable) names.add(name);
      return "";
    });
  else if (typeof value === "object" && value !== null)
    for (const inner of Object.values(value)) collect(inner, names);
}

/** What a record shows in place of a key that was left out. */
export const LEFT_OUT = "[secret]";
/** Names that mean a secret wherever they stand; others, such as `padToken`, need not. */
const SECRET_SETTING =
  /(?:(?:api|access|auth|bearer|client|private|secret)[_-]?(?:key|token|secret)|password|passphrase|credentials?)$/i;
/** Settings that name the variable with a key, and what such a name looks like. */
const KEY_VARIABLE = /(?:key|token|secret|password)Variable$/i;
const VARIABLE_NAME = /^[A-Za-z_]\w*$/;

/** A setting that holds a key. */
export interface SecretSetting {
  readonly path: readonly string[];
  /** What to do instead. */
  readonly fix: string;
}

/** The settings that hold a key or a password themselves, at any depth. */
export function secretSettings(settings: unknown): readonly SecretSetting[] {
  const found: SecretSetting[] = [];
  walk(settings, [], (value, path, before) => {
    const fix = fixOf(value, path, before);
    if (fix !== undefined) found.push({ path, fix });
    return value;
  });
  return found;
}

/** Settings, or what stands at a path of them, with keys and passwords left out, and where they were. */
export function withoutSecretSettings<T>(
  settings: T,
  path: readonly string[] = [],
): {
  readonly settings: T;
  readonly leftOut: readonly string[];
} {
  const leftOut: string[] = [];
  const clean = walk(settings, path, (value, at, before) => {
    if (fixOf(value, at, before) === undefined) return value;
    leftOut.push(at.join("."));
    return LEFT_OUT;
  });
  return { settings: clean as T, leftOut };
}

/** What to tell the user about settings that were left out of a copy of a run's settings. */
export function leftOutNotice(folder: string, config: unknown): string | undefined {
  const { leftOut } = withoutSecretSettings(config);
  return leftOut.length === 0
    ? undefined
    : `${folder} was recorded with a key in ${leftOut.join(", ")}. It is left out of what is written or sent now, but manifest.json holds it: replace the key if others can read that file`;
}

/** Whether a setting takes placeholders: those that start and reach an MCP server. */
const isFilled = (path: readonly string[]): boolean => {
  const at = path.lastIndexOf("servers");
  return at >= 0 && /^(args|cwd|env|headers|url)$/.test(path[at + 2] ?? "");
};

/** Whether the user chose the last name of a path: a variable or a header of a server. */
const isNamedByUser = (path: readonly string[]): boolean =>
  path.at(-2) === "headers" || (path.at(-2) === "env" && path.at(-4) === "servers");

/** Whether whatever stands here is a secret, by its name; `before`: the argument before it. */
export function isSecretPlace(path: readonly string[], before?: unknown): boolean {
  const name = path.at(-1)!;
  if (isNamedByUser(path)) return isSecretName(name);
  if (path.at(-2) === "args") return isSecretName(/^--?([\w-]+)$/.exec(String(before))?.[1] ?? "");
  return SECRET_SETTING.test(name);
}

/** What to write instead of a secret; undefined if the value is none. */
function fixOf(text: string, path: readonly string[], before?: string): string | undefined {
  if (text === "" || text === LEFT_OUT) return undefined;
  if (KEY_VARIABLE.test(path.at(-1)!)) return variableFix(text);
  const filled = isFilled(path);
  let hasPlaceholder = false;
  const beside = (): string => {
    hasPlaceholder = true;
    return "";
  };
  const literal = filled ? replacePlaceholders(text, beside) : text;
  if (hasCredentials(literal))
    return `an address must not contain a user name, password or key. ${
      filled
        ? "Put the key, or all of it, into an environment variable, and write {env:NAME} in its place"
        : "Put the key into the environment variable that the help of this setting names"
    }`;
  const [, start, flag] = (path.at(-2) === "args" && /^(--?([\w-]+)=)./s.exec(text)) || [];
  const isPlace = isSecretPlace(path, before) || isSecretName(flag ?? "");
  // Beside a placeholder there may be words, such as Bearer. A file that holds a key is none.
  const isKey = looksLikeKey(literal) || (isPlace && !hasPlaceholder && !isFile(text));
  if (!isKey) return undefined;
  if (!filled)
    return "a key must not stand in a setting. Put it into an environment variable: the help of this setting, or whoever wrote its plugin, says which";
  const variable = variableFor(path, flag ?? before);
  const words = /^(?:Bearer|Basic|Token) /i.exec(text)?.[0] ?? start ?? "";
  return `a key must not stand in a setting. Put it into an environment variable (export ${variable}=…), and write "${words}{env:${variable}}" instead`;
}

function variableFix(text: string): string | undefined {
  if (VARIABLE_NAME.test(text) && !looksLikeKey(text)) return undefined;
  const [meant] = environmentVariablesIn(text);
  return `expected the name of an environment variable${meant === undefined ? ", which holds the key" : `: ${meant}`}`;
}

const isFile = (text: string): boolean => /[\\/]/.test(text) && existsSync(text);

/** A variable's name for a key that a server needs. */
function variableFor(path: readonly string[], flag = ""): string {
  const at = path.lastIndexOf("servers");
  const [server, kind, name] = path.slice(at + 1) as [string, string, string];
  if (kind === "env") return name;
  const what = kind === "headers" ? name.replace(/^x-/i, "") : flag.replace(/^-+/, "");
  const words = `${server}_${/^(proxy-)?authorization$/i.test(what) ? "token" : what || "key"}`;
  return words
    .replace(/\W+/g, "_")
    .replace(/^(?=\d)/, "_")
    .toUpperCase();
}

type Visit = (value: string, path: readonly string[], before?: string) => string;

function walk(value: unknown, path: readonly string[], visit: Visit, before?: unknown): unknown {
  if (typeof value === "string")
    return path.length === 0
      ? value
      : visit(value, path, typeof before === "string" ? before : undefined);
  if (Array.isArray(value))
    return value.map((inner, i) => walk(inner, [...path, String(i)], visit, value[i - 1]));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [key, walk(inner, [...path, key], visit)]),
  );
}

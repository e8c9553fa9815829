/**
 * Placeholders in the settings of servers: `{name}` for fields of the task and the episode's own
 * folder, `{env:NAME}` for environment variables, which are read when a server is started.
 */
import { environmentVariablesIn, replacePlaceholders } from "../../env-placeholders.js";
import { isSecretPlace } from "../../secret-settings.js";
import { isSecretName, looksLikeKey, noteSecret } from "../../secrets.js";
import { EnvError } from "../env.js";

/** The text with its placeholders filled; `{{` and `}}` stand for braces. */
export function fill(
  text: string,
  values: Readonly<Record<string, unknown>>,
  where: string,
): string {
  return replacePlaceholders(text, ({ name, isVariable }) => {
    if (isVariable) return variable(name, where);
    const value = Object.hasOwn(values, name) ? values[name] : undefined;
    if (typeof value === "string" || typeof value === "number" || typeof value === "boolean")
      return String(value);
    throw new EnvError(
      `${where}: there is no value for {${name}}; the task has ${Object.keys(values).join(", ")}. Write {{${name}}} for the braces themselves`,
    );
  });
}

function variable(name: string, where: string): string {
  const value = process.env[name];
  if (value !== undefined && value.trim() !== "") return value;
  throw new EnvError(
    `environment mcp: ${where}: the environment variable ${name} is not set: export ${name}=…, and start again`,
  );
}

/**
 * Refuses `{env:NAME}` without such a variable, before any episode, and notes the values that are
 * secrets: servers may repeat them.
 */
export function checkVariables(
  settings: unknown,
  path: readonly string[] = ["servers"],
  before?: unknown,
): void {
  if (typeof settings === "object" && settings !== null) {
    const entries = Object.entries(settings);
    for (const [i, [key, inner]] of entries.entries())
      checkVariables(inner, [...path, key], entries[i - 1]?.[1]);
    return;
  }
  for (const name of environmentVariablesIn(settings)) {
    const where = path.join(".");
    const value = variable(name, where).trim();
    // Checked here because fetch's error would contain the whole header.
    if (path.includes("headers") && !/^[\x20-\x7e]+$/.test(value))
      throw new EnvError(
        `environment mcp: ${where}: the environment variable ${name} holds line ends or characters outside ASCII, which a header cannot contain; copy it again`,
      );
    if (isSecretPlace(path, before) || isSecretName(name) || looksLikeKey(value)) noteSecret(value);
  }
}

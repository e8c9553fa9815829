/**
 * Placeholders in the settings of servers: `{name}` for fields of the task and the episode's own
 * folder, `{env:NAME}` for environment variables, which are read when a server is started.
 */

import { EnvError } from "@pawl/core/envs/env.js";
import {
  environmentVariablesIn,
  isSecretPlace,
  LEFT_OUT,
  replacePlaceholders,
  withoutSecretSettings,
} from "@pawl/core/trust/secret-settings.js";
import { isSecretName, looksLikeKey, noteSecret } from "@pawl/core/trust/secrets.js";

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
 * Refuses `{env:NAME}` without such a variable, and keys that were left out; and notes the values
 * that are secrets, because servers may repeat them.
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
  if (typeof settings !== "string") return;
  const where = `environment mcp: ${path.join(".")}`;
  if (settings === LEFT_OUT)
    throw new EnvError(
      `${where}: a key stood here, and was left out when these settings were recorded or published: write {env:NAME}, and put the key into that environment variable`,
    );
  const isSecret = isSecretPlace(path, before);
  const names = environmentVariablesIn(settings);
  for (const name of names) {
    const value = variable(name, path.join(".")).trim();
    // Checked here because fetch's error would contain the whole header.
    if (path.includes("headers") && !/^[\x20-\x7e]+$/.test(value))
      throw new EnvError(
        `${where}: the environment variable ${name} holds line ends or characters outside ASCII, which a header cannot contain; copy it again`,
      );
    if (isSecret || isSecretName(name) || looksLikeKey(value)) noteSecret(value);
  }
  // Recorded by an older version.
  if (names.length === 0 && withoutSecretSettings(settings, path).leftOut.length > 0)
    noteSecret(settings.replace(/^(?:Bearer|Basic|Token) /i, ""));
}

/**
 * Task lists that can be cited: a name such as `household/valid_seen`, and a hash.
 *
 * The hash covers the environment's name, the options that make its worlds, and every task in its
 * order. Where the data lies is not part of it, so two machines with the same tasks agree.
 */
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { settingsOf } from "@pawl/core/config/settings.js";
import type { Task } from "@pawl/core/envs/env.js";
import type { EnvConfig } from "@pawl/core/envs/open.js";
import { envConfig, findEnvKind } from "@pawl/core/envs/registry.js";
import { withoutSecretSettings } from "@pawl/core/trust/secret-settings.js";

/** A list of tasks by name and hash. */
export interface TaskList {
  /**
   * `household/valid_seen`; `household/valid_seen:64` for its first 64 tasks, and
   * `household/valid_seen:64-shuffled` for a sample of 64.
   */
  readonly name: string;
  readonly tasks: number;
  readonly sha256: string;
}

/** Names and hashes tasks of a split; `whole` is its length, and `shuffle` how fewer were chosen. */
export function taskListOf(
  env: EnvConfig,
  split: string,
  tasks: readonly Task[],
  {
    whole = tasks.length,
    shuffle = false,
  }: { readonly whole?: number; readonly shuffle?: boolean } = {},
): TaskList {
  const options = worldOptions(env);
  const hash = createHash("sha256");
  hash.update(`${canonical([env.name, options])}\n`);
  for (const task of tasks) hash.update(`${canonical(task)}\n`);
  const said = Object.entries(withoutSecretSettings(options).settings).map(
    ([key, value]) => `${key}=${plain(value)}`,
  );
  const world = said.length === 0 ? env.name : `${env.name}(${said.join(",")})`;
  const part = tasks.length === whole ? "" : `:${tasks.length}${shuffle ? "-shuffled" : ""}`;
  return {
    name: `${world}/${split}${part}`,
    tasks: tasks.length,
    sha256: hash.digest("hex"),
  };
}

/** As much of a hash as a table shows. */
export const shortHash = (sha256: string): string => sha256.slice(0, 12);

/** The options that differ from their defaults and name no place, by their paths. */
function worldOptions(env: EnvConfig): Readonly<Record<string, unknown>> {
  const options: Record<string, unknown> = {};
  for (const setting of settingsOf(envConfig(findEnvKind(env.name)))) {
    const [first] = setting.path;
    if (first === "name" || first === "limits") continue;
    const value = setting.path.reduce<unknown>(
      (tree, key) => (tree as Readonly<Record<string, unknown>> | undefined)?.[key],
      env,
    );
    if (value === undefined || isPlace(value)) continue;
    if (canonical(value) !== canonical(setting.default)) options[setting.path.join(".")] = value;
  }
  return options;
}

/** A file, a folder or an address: the same tasks lie elsewhere on another machine. */
function isPlace(value: unknown): boolean {
  return typeof value === "string" && (/[\\/]/.test(value) || existsSync(value));
}

const plain = (value: unknown): string =>
  typeof value === "string" ? value : Array.isArray(value) ? value.join("+") : canonical(value);

/** JSON with sorted keys: equal values give equal texts. */
export function canonical(value: unknown): string {
  return (
    JSON.stringify(value, (_, inner: unknown) =>
      typeof inner === "object" && inner !== null && !Array.isArray(inner)
        ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
        : inner,
    ) ?? "undefined"
  );
}

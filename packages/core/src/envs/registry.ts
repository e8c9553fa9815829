/**
 * The kinds of environments that can be opened by name. The program names its own, and how each is
 * loaded (`registerEnvs`); users add theirs (`registerEnv`).
 */

import { z } from "zod";
import { didYouMean } from "../text/nearest.js";
import { EnvError, type EnvKind } from "./env.js";
import { limitOptions } from "./limits.js";

/** A kind of environment that is loaded when it is needed. */
export interface EnvEntry {
  readonly name: string;
  load(): Promise<EnvKind>;
}

const kinds = new Map<string, EnvKind>();
const entries = new Map<string, EnvEntry>();

/** Settings that every environment has (`open.ts`). */
const RESERVED = ["name", "limits"];

/** The names of all known kinds, sorted; some may not be loaded. */
export function envNames(): readonly string[] {
  return [...new Set([...entries.keys(), ...kinds.keys()])].sort();
}

/** All known kinds of environments, sorted by name. */
export function envKinds(): readonly EnvKind[] {
  return envNames().map(findEnvKind);
}

/** Whether a kind comes with the program, so that each of its processes knows it. */
export function isBuiltIn(name: string): boolean {
  return entries.has(name);
}

/**
 * The kind with this name, which has been loaded; an unknown name is an `EnvError` with the nearest
 * name and a list of all.
 */
export function findEnvKind(name: string): EnvKind {
  const kind = kinds.get(name);
  if (kind !== undefined) return kind;
  const names = envNames();
  if (names.includes(name))
    throw new Error(`the environment "${name}" is not loaded: call loadEnvKinds first`);
  throw new EnvError(
    `There is no environment "${name}".${didYouMean(name, names)} Known: ${names.join(", ")}.`,
  );
}

/** Adds the program's own kinds, by name. */
export function registerEnvs(added: readonly EnvEntry[]): void {
  for (const entry of added) entries.set(entry.name, entry);
}

/** Loads what is not loaded yet of the kinds with these names, or of all; unknown names are left out. */
export async function loadEnvKinds(names = envNames()): Promise<void> {
  for (const name of names) {
    const entry = kinds.has(name) ? undefined : entries.get(name);
    if (entry !== undefined) kinds.set(name, await entry.load());
  }
}

/** Adds a kind of environment, so that commands and configurations can name it. */
export function registerEnv(kind: EnvKind): void {
  if (typeof kind?.name !== "string" || !/^[a-z][a-z0-9-]*$/.test(kind.name)) {
    throw new EnvError(
      `An environment's name consists of lowercase letters, digits and dashes, not "${kind?.name}".`,
    );
  }
  if (kind.options?._zod?.def?.type !== "object" || typeof kind.open !== "function") {
    throw new EnvError(
      `environment "${kind.name}": expected { name, summary, options, open(options) }, where options is a zod object; defineEnv checks the types`,
    );
  }
  const reserved = RESERVED.find((key) => key in kind.options.shape);
  if (reserved !== undefined) {
    throw new EnvError(
      `environment "${kind.name}": an option cannot be called ${reserved}; every environment has that one`,
    );
  }
  const known = kinds.get(kind.name);
  if (known === kind) return;
  if (known !== undefined || entries.has(kind.name)) {
    throw new EnvError(
      `There is an environment "${kind.name}" already (${known?.summary ?? "the program's own"}); choose another name.`,
    );
  }
  kinds.set(kind.name, kind);
}

/** The schema of an environment's configuration: its name, and the options of that kind. */
export function envConfig(kind: EnvKind): z.ZodObject {
  return kind.options.safeExtend({
    name: z
      .enum(envNames())
      .default(kind.name)
      .describe("environment (pawl env list describes them)"),
    limits: limitOptions,
  });
}

/**
 * Settings that have an effect only together with others. Each says when it applies, in one table per
 * kind of configuration; one that was given where it does not is refused, instead of being ignored.
 */
import { isDeepStrictEqual } from "node:util";
import type { z } from "zod";
import { ConfigError } from "./config-error.js";
import { type Setting, settingsOf } from "./settings.js";
import { type SettingsTree, valueAt } from "./settings-tree.js";

/** When some settings have an effect. */
export interface Applies<C = SettingsTree> {
  /** Their paths; that of a group stands for all of its settings but those that decide. */
  readonly settings: readonly string[];
  /** The settings that decide. */
  readonly by: readonly string[];
  /** What those must be, for help and errors: `rollout.pace own`. */
  readonly needs: string;
  holds(config: C): boolean;
}

/**
 * Whether the user gave a setting, and did not switch it off later: a flag may turn off what a file
 * describes.
 */
export type Given = (path: string, by: readonly string[]) => boolean;

/** Where a setting was given, for errors. */
export type PlaceOf = (path: readonly string[]) => string;

/** What a description says about a value that depends on other settings. */
export const DEFAULT = / \(default[^()]*\)$/;

/** A setting's description with what it needs; that a group's settings need the group goes without saying. */
export function describedWith(
  { path, description }: Pick<Setting, "path" | "description">,
  rules: readonly Applies<never>[],
): string {
  const own = rules.filter(({ settings }) => settings.includes(path.join(".")));
  const needs = own.map((rule) => `; needs ${rule.needs}`).join("");
  const [about = ""] = DEFAULT.exec(description) ?? [];
  return `${description.slice(0, description.length - about.length)}${needs}${about}`;
}

function isAbout({ settings, by }: Pick<Applies<never>, "settings" | "by">, path: string): boolean {
  return settings.some((one) => path === one || path.startsWith(`${one}.`)) && !by.includes(path);
}

/** Throws if a setting was given that has no effect; a value that is the default does no harm. */
export function refuseIgnored<S extends z.ZodObject>(
  schema: S,
  config: z.output<S>,
  rules: readonly Applies<z.output<S>>[],
  given: Given,
  placeOf: PlaceOf = (path) => path.join("."),
): void {
  for (const setting of settingsOf(schema)) {
    const path = setting.path.join(".");
    const value = valueAt(config as SettingsTree, setting.path);
    if (value === undefined || isDeepStrictEqual(value, setting.default)) continue;
    const rule = rules.find(
      (one) => isAbout(one, path) && given(path, one.by) && !one.holds(config),
    );
    if (rule !== undefined)
      throw new ConfigError(ignored(placeOf(setting.path), setting, rule, config as SettingsTree));
  }
}

function ignored(
  place: string,
  { path, default: usual }: Setting,
  { needs, by }: Pick<Applies, "needs" | "by">,
  config: SettingsTree,
): string {
  const shown = (value: unknown) => (typeof value === "string" ? value : JSON.stringify(value));
  const now = by.flatMap((one) => {
    const value = valueAt(config, one.split("."));
    return value === undefined ? [] : [`${one} is ${shown(value)}`];
  });
  const because = now.length === 0 ? "" : ` (${now.join(", ")})`;
  const back = usual === undefined ? "" : ` (its default is ${shown(usual)})`;
  return `${place}: ${shown(valueAt(config, path))} would change nothing: it needs ${needs}${because}. Set that, or leave ${path.join(".")} out${back}.`;
}

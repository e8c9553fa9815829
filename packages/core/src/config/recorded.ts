/**
 * Settings as recorded, checked by today's schema.
 *
 * A record holds every setting with its value, so a default that changes later does not affect it.
 * Only settings that did not exist yet are missing. Today's default may differ from what runs did
 * before the setting existed; the caller then says what held.
 */
import type { z } from "zod";
import { type SettingsTree, valueAt, withValueAt } from "./settings-tree.js";

/** A setting that was added, removed or renamed since runs were recorded. */
export type SettingHistory =
  | {
      readonly path: string;
      /**
       * What held before the setting existed, if that differs from its default; it may depend on
       * the other settings.
       */
      readonly before: unknown | ((settings: SettingsTree) => unknown);
    }
  | {
      readonly path: string;
      /**
       * The setting was removed; recorded values are ignored. Where this depends on the value, one
       * that had an effect makes the record unreadable.
       */
      readonly gone: true | ((value: unknown, settings: SettingsTree) => boolean);
      /** The last commit that has it. */
      readonly last?: string;
    }
  | {
      readonly path: string;
      /** The setting's path today. */
      readonly renamed: string;
      /** Renamed values. */
      readonly values?: Readonly<Record<string, string>>;
    };

/** Recorded settings that cannot be read, and why. */
export interface Unreadable {
  readonly reasons: readonly string[];
}

/**
 * Reads recorded settings: newer settings are filled in from `history`, otherwise from their
 * default.
 */
export function parseRecorded<S extends z.ZodObject>(
  schema: S,
  recorded: SettingsTree,
  history: readonly SettingHistory[],
): { readonly config: z.output<S> } | Unreadable {
  const settings = migrate(recorded, history);
  const removed = history.flatMap((change) => {
    const value = "gone" in change ? valueAt(settings, change.path.split(".")) : undefined;
    if (!("gone" in change) || value === undefined) return [];
    const last = change.last === undefined ? "" : `; commit ${change.last} is the last that has it`;
    return [`${change.path} ${JSON.stringify(value)} (removed${last})`];
  });
  if (removed.length > 0) return { reasons: removed };
  const parsed = schema.safeParse(settings);
  if (parsed.success) return { config: parsed.data };
  return {
    reasons: parsed.error.issues.flatMap((issue) => {
      const path = issue.path.map(String);
      return issue.code === "unrecognized_keys"
        ? issue.keys.map((key) => `${[...path, key].join(".")} is unknown`)
        : [`${path.join(".")}: ${issue.message}`];
    }),
  };
}

function migrate(recorded: SettingsTree, history: readonly SettingHistory[]): SettingsTree {
  let settings = recorded;
  for (const change of history) {
    const path = change.path.split(".");
    const parent = path.slice(0, -1);
    // Only if the part it belongs to was recorded: a variant without it stays without.
    if (valueAt(settings, parent) === undefined && parent.length > 0) continue;
    if ("gone" in change) settings = withoutGone(settings, path, change.gone);
    else if ("renamed" in change) settings = rename(settings, path, change);
    else if (valueAt(settings, path) === undefined)
      settings = withValueAt(settings, path, heldBefore(change.before, settings));
  }
  return settings;
}

function withoutGone(
  settings: SettingsTree,
  path: readonly string[],
  gone: Extract<SettingHistory, { readonly gone: unknown }>["gone"],
): SettingsTree {
  const isIgnored = gone === true || gone(valueAt(settings, path), settings);
  return isIgnored ? withValueAt(settings, path, undefined) : settings;
}

const heldBefore = (before: unknown, settings: SettingsTree): unknown =>
  typeof before === "function" ? before(settings) : before;

/**
 * The settings with one of them renamed. If a record has both names, the caller set the old one on
 * top, and it wins.
 */
function rename(
  settings: SettingsTree,
  path: readonly string[],
  { renamed, values = {} }: Extract<SettingHistory, { readonly renamed: string }>,
): SettingsTree {
  const value = valueAt(settings, path);
  if (value === undefined) return settings;
  const today = typeof value === "string" ? (values[value] ?? value) : value;
  return withValueAt(withValueAt(settings, path, undefined), renamed.split("."), today);
}

/** The renamed settings that a record has under their old names, as `old → new`. */
export function olderNames(
  recorded: SettingsTree,
  history: readonly SettingHistory[],
): readonly string[] {
  return history.flatMap((change) =>
    "renamed" in change && valueAt(recorded, change.path.split(".")) !== undefined
      ? [`${change.path} → ${change.renamed}`]
      : [],
  );
}

/** The folders of a comparison: `OUT/SETTING/ARM/seed-N` of its runs, `OUT/SETTING/start…` of its starts. */
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import type { Algorithm } from "./arms.js";

/** A run's folder, and what its path says. */
export interface RunFolder {
  /** `SETTING/ARM/seed-N`. */
  readonly key: string;
  readonly setting: string;
  readonly algorithm: Algorithm;
  readonly arm: string;
  readonly folder: string;
}

/** The runs in a comparison's folder, finished or not. */
export function runsIn(out: string): readonly RunFolder[] {
  return subfolders(out).flatMap((setting) =>
    subfolders(join(out, setting)).flatMap((arm) =>
      subfolders(join(out, setting, arm))
        .filter((name) => name.startsWith("seed-"))
        .map((name) => ({
          key: join(setting, arm, name),
          setting,
          algorithm: algorithmOf(arm),
          arm,
          folder: join(out, setting, arm, name),
        })),
    ),
  );
}

/** The algorithm of an arm by its name. */
export const algorithmOf = (arm: string): Algorithm => arm.split("+")[0] as Algorithm;

/** The folders of starts in a comparison's folder. */
export function startFolders(out: string): readonly string[] {
  return subfolders(out).flatMap((setting) =>
    subfolders(join(out, setting))
      .filter((name) => /^start(-|$)/.test(name))
      .map((name) => join(out, setting, name)),
  );
}

function subfolders(folder: string): readonly string[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => entry.name)
    .sort();
}

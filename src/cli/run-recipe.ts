/** The recipe of a run, to show what is its own. */
import { resolveConfig } from "../config/resolve.js";
import { findEnvKind } from "../envs/registry.js";
import type { Recipe } from "../report/setting-rows.js";
import type { Manifest } from "../runs/manifest.js";
import { trainConfig } from "../train/config.js";
import { recipeOf } from "./default-recipe.js";

/** The recipe that `pawl train` would take for a run's world. */
export function runRecipe({ kind, config }: Manifest): Recipe | undefined {
  const { name, data } = (config.env ?? {}) as Readonly<Record<string, unknown>>;
  if (kind !== "train" || typeof name !== "string") return undefined;
  try {
    const { path, content } = recipeOf(name, (path) =>
      path === "env.data" && typeof data === "string" ? data : undefined,
    );
    const layers = [{ path, content }];
    const full = resolveConfig(trainConfig(findEnvKind(name)), { layers, flags: [] });
    return { name: path, config: full };
  } catch {
    // A world of a plugin, which whoever only reads does not load.
    return undefined;
  }
}

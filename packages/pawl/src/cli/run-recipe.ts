/** The recipe of a run, to show what is its own. */
import { resolveConfig } from "@pawl/core/config/resolve.js";
import { differences, valueAt } from "@pawl/core/config/settings-tree.js";
import { findEnvKind } from "@pawl/core/envs/registry.js";
import type { Manifest } from "@pawl/core/runs/manifest.js";
import type { RecordedRun } from "@pawl/core/runs/run-folder.js";
import { withoutSecretSettings } from "@pawl/core/trust/secret-settings.js";
import { trainConfig } from "@pawl/training/config.js";
import type { Recipe } from "@pawl/ui/report/run-groups.js";
import { PRETRAINED, pretrainedRecipe, quickRecipe, recipeOf } from "./default-recipe.js";
import { DEFAULT_WORLD } from "./worlds.js";

/**
 * The recipe that `pawl train` takes for a run's world, or that of `--quick` if the run was made with it. Older runs do
 * not say; for them it is the nearer one.
 */
export function runRecipe({
  kind,
  config,
  recipe: recorded,
}: Pick<Manifest, "kind" | "config" | "recipe">): Recipe | undefined {
  const { name, data } = (config.env ?? {}) as Readonly<Record<string, unknown>>;
  if (kind !== "train" || typeof name !== "string") return undefined;
  try {
    const known: Readonly<Record<string, unknown>> = {
      "env.data": data,
      "engine.address": valueAt(config, ["engine", "address"]),
      "engine.loraRank": valueAt(config, ["engine", "loraRank"]),
    };
    const peek = (path: string): string | undefined =>
      typeof known[path] === "string" || typeof known[path] === "number"
        ? String(known[path])
        : undefined;
    const usual = recorded === PRETRAINED ? pretrainedRecipe(name, peek) : recipeOf(name, peek);
    const short = name === DEFAULT_WORLD ? quickRecipe({ peek, file: undefined }) : usual;
    const bases =
      recorded === undefined ? [usual, short] : [recorded === short.path ? short : usual];
    const recipes = bases.map(({ path, content }): Recipe => {
      const layers = [{ path, content }];
      const full = resolveConfig(trainConfig(findEnvKind(name)), { layers, flags: [] });
      return { name: path, config: full };
    });
    const far = (recipe: Recipe): number => differences(recipe.config, config).length;
    return recipes.reduce((near, recipe) => (far(recipe) < far(near) ? recipe : near));
  } catch {
    // A world of a plugin, which whoever only reads does not load.
    return undefined;
  }
}

/** The settings of a training run that differ from those that `pawl train` takes for its world. */
export function changedSettings({ manifest }: RecordedRun): readonly string[] {
  const recipe = runRecipe(manifest)?.config;
  if (recipe === undefined) return [];
  return (
    differences(recipe, withoutSecretSettings(manifest.config).settings)
      // The seed is told apart; what an earlier version did not record is not a change.
      .filter(({ path, to }) => path.join(".") !== "seed" && to !== undefined)
      .map(
        ({ path, from, to }) =>
          `${path.join(".")} ${JSON.stringify(to)} (recipe: ${from === undefined ? "–" : JSON.stringify(from)})`,
      )
  );
}

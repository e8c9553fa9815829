/** The settings of a run beside those of its recipe. */
import { flatten } from "./run-groups.js";
import type { SettingRow } from "./views.js";

/** The settings that a run would have without any of its own. */
export interface Recipe {
  readonly name: string;
  readonly config: Readonly<Record<string, unknown>>;
}

/** All settings of a run; those that differ name the recipe's. */
export function settingRows(
  config: Readonly<Record<string, unknown>>,
  recipe: Recipe["config"] | undefined,
): readonly SettingRow[] {
  const base = recipe === undefined ? undefined : flatten(recipe);
  const own = flatten(config);
  const rows = [...own].map(([path, value]): SettingRow => {
    const other = base?.get(path);
    return base === undefined || other === value
      ? { path, value }
      : { path, value, recipe: other ?? "–" };
  });
  const gone = [...(base ?? [])].flatMap(([path, value]) =>
    own.has(path) ? [] : [{ path, value: "–", recipe: value }],
  );
  return [...rows, ...gone];
}

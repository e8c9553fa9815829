/** The recipes of this package by name, from wherever a command is called. */
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { ConfigError } from "@pawl/core/config/config-error.js";
import type { ConfigLayer } from "@pawl/core/config/resolve.js";
import type { SettingsTree } from "@pawl/core/config/settings-tree.js";
import { importModule } from "@pawl/core/module-loader.js";
import { didYouMean } from "@pawl/core/text/nearest.js";
import { packageFolder } from "@pawl/core/version.js";

/** The settings of `recipes/NAME.ts`: its default export, or the one of its own name. */
export async function namedRecipe(
  name: string,
  configPath: string | undefined,
): Promise<ConfigLayer> {
  if (configPath !== undefined)
    throw new ConfigError(
      "--recipe and --config are both a complete description: leave one of them out.",
    );
  const folder = join(packageFolder(), "recipes");
  const file = `${name}.ts`;
  const names = readdirSync(folder).map((one) => one.replace(/\.ts$/, ""));
  if (!names.includes(name) || !existsSync(join(folder, file)))
    throw new ConfigError(
      `--recipe: there is no recipe "${name}".${didYouMean(name, names)} There are ${names.join(", ")}; --config FILE takes a file.`,
    );
  const module = await importModule(join(folder, file));
  const content = module.default ?? module[camelCase(name)];
  if (typeof content !== "object" || content === null)
    throw new ConfigError(
      `--recipe ${name}: recipes/${file} is no recipe by itself; pawl train takes it where it fits`,
    );
  return { path: `recipes/${file}`, content: content as SettingsTree };
}

const camelCase = (name: string): string =>
  name.replace(/-(.)/g, (_, letter: string) => letter.toUpperCase());

/** The recipes of the environments of this package. */
import { alfworld } from "../../recipes/alfworld.js";
import { desk } from "../../recipes/desk.js";
import { laptop } from "../../recipes/laptop.js";
import { scienceworld } from "../../recipes/scienceworld.js";
import { search } from "../../recipes/search.js";
import { tauRetail } from "../../recipes/tau-retail.js";
import { textworld } from "../../recipes/textworld.js";
import { officialWebshop, webshop } from "../../recipes/webshop.js";
import type { ConfigLayer } from "../config/resolve.js";
import { DEFAULT_WORLD } from "./worlds.js";

const RECIPES: Readonly<Record<string, ConfigLayer>> = {
  [DEFAULT_WORLD]: { path: "recipes/laptop.ts", content: laptop },
  alfworld: { path: "recipes/alfworld.ts", content: alfworld },
  webshop: { path: "recipes/webshop.ts", content: webshop },
  scienceworld: { path: "recipes/scienceworld.ts", content: scienceworld },
  search: { path: "recipes/search.ts", content: search },
  desk: { path: "recipes/desk.ts", content: desk },
  tau: { path: "recipes/tau-retail.ts", content: tauRetail },
  textworld: { path: "recipes/textworld.ts", content: textworld },
};

/**
 * Recipes for worlds that are made up unless a variable says where their official files are; without one, such a world
 * is treated as one from outside this package.
 */
const WITH_FILES: Readonly<
  Record<string, { readonly variable: string; readonly recipe?: ConfigLayer }>
> = {
  webshop: {
    variable: "WEBSHOP_DATA",
    recipe: { path: "recipes/webshop.ts", content: officialWebshop },
  },
  search: { variable: "SEARCHQA_DATA" },
};

/** The recipe of an environment of this package. */
export function ownedRecipe(
  name: string,
  hasFiles: (variable: string) => boolean,
): ConfigLayer | undefined {
  const official = WITH_FILES[name];
  return official !== undefined && hasFiles(official.variable) ? official.recipe : RECIPES[name];
}

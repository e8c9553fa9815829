/** The recipes of the environments of this package. */
import { alfworld } from "../../recipes/alfworld.js";
import { desk } from "../../recipes/desk.js";
import { laptop } from "../../recipes/laptop.js";
import { scienceworld } from "../../recipes/scienceworld.js";
import { search } from "../../recipes/search.js";
import { tauRetail } from "../../recipes/tau-retail.js";
import { textworld } from "../../recipes/textworld.js";
import { webshop } from "../../recipes/webshop.js";
import type { ConfigLayer } from "../config/resolve.js";

const RECIPES: Readonly<Record<string, ConfigLayer>> = {
  household: { path: "recipes/laptop.ts", content: laptop },
  alfworld: { path: "recipes/alfworld.ts", content: alfworld },
  webshop: { path: "recipes/webshop.ts", content: webshop },
  scienceworld: { path: "recipes/scienceworld.ts", content: scienceworld },
  search: { path: "recipes/search.ts", content: search },
  desk: { path: "recipes/desk.ts", content: desk },
  tau: { path: "recipes/tau-retail.ts", content: tauRetail },
  textworld: { path: "recipes/textworld.ts", content: textworld },
};

/** The recipe of an environment of this package. */
export const ownedRecipe = (name: string): ConfigLayer | undefined => RECIPES[name];

/**
 * Colour words: an option that contains one counts as that colour when a purchase is scored.
 *
 * The original has its own list in `normalize.py`, and the first entry that fits wins. If that file
 * is next to the official data, it is read from there; otherwise our own list is used, in
 * alphabetical order like the original's. Scores can differ for options whose colour word is in
 * only one of the lists.
 */
import { existsSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { readRegularText } from "../../regular-file.js";
import { EnvError } from "../env.js";

/** The name of the original's file with the list. */
export const COLOUR_FILE = "normalize.py";

/** Our own colour words, sorted. */
export const colours: readonly string[] =
  "apricot aqua ash azure beige black blue blush bronze brown burgundy camel camo caramel champagne charcoal chestnut chocolate coffee copper coral cream crimson crystal cyan denim espresso fuchsia gold granite graphite gray green grey heather indigo ivory khaki lavender lemon leopard lilac lime magenta maroon mauve midnight mint mocha multicolor mustard natural navy nude olive orange peach pink plum purple rainbow red rose royal rust sand sapphire silver slate steel stone sunflower tan taupe teal tiger turquoise violet walnut wheat white wine yellow".split(
    " ",
  );

/**
 * The colour words to score with: the original's if its file is next to the data, otherwise ours.
 */
export function findColours(data: string): readonly string[] {
  const path = join(statSync(data).isDirectory() ? data : dirname(data), COLOUR_FILE);
  if (!existsSync(path)) return colours;
  const list = /COLOR_SET\s*=\s*\[([^\]]*)\]/.exec(readRegularText(path))?.[1];
  const words = [...(list ?? "").matchAll(/'([^']*)'|"([^"]*)"/g)].map(([, a, b]) => a ?? b ?? "");
  if (words.length === 0)
    throw new EnvError(`${path} has no list COLOR_SET; take the file of the WebShop repository.`);
  return words;
}

/** The score of a purchase: how well it matches what was wanted, from 0 to 1. */

import { existsSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { EnvError } from "@pawl/core/envs/env.js";
import { textRepr } from "@pawl/core/envs/python-text.js";
import { readRegularText } from "@pawl/core/files/regular-file.js";
import type { Product } from "./catalogue.js";
import type { Goal, WantedOption } from "./goals.js";

// Colour words: an option that contains one counts as that colour when a purchase is scored.
//
// The original has its own list in `normalize.py`, and the first entry that fits wins. If that file
// is next to the official data, it is read from there; otherwise our own list is used, in
// alphabetical order like the original's. Scores can differ for options whose colour word is in
// only one of the lists.

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

/** Texts more similar than this count as the same. */
const ALIKE = 85;

/** A product with its price and the chosen options. */
export interface Purchase {
  readonly product: Product;
  readonly attributes: readonly string[];
  readonly price: number;
  /** The chosen option values. */
  readonly options: readonly string[];
}

/** A score and its parts. */
export interface Score {
  readonly score: number;
  /** The score as if the kind of product were right. */
  readonly withoutType: number;
  /** 1 for the right kind of product, 0.5, 0.1 or 0 for others. */
  readonly type: number;
  readonly attributeHits: number;
  readonly optionHits: number;
  readonly priceHit: boolean;
  /** The denominator: attributes, options and price. */
  readonly wanted: number;
}

/** Scores a purchase for a goal whose own product is `wanted`. */
export function scorePurchase(
  goal: Goal,
  wanted: Product,
  purchase: Purchase,
  colours: readonly string[],
): Score {
  const attributeHits = goal.attributes.filter((one) => hasAttribute(purchase, one)).length;
  const optionHits = countOptionHits(goal.options, purchase.options, colours);
  const priceHit = purchase.price <= goal.priceLimit;
  const total = goal.attributes.length + goal.options.length + 1;
  const withoutType = (attributeHits + optionHits + (priceHit ? 1 : 0)) / total;
  const type = typeScore(wanted, purchase.product);
  return {
    score: withoutType * type,
    withoutType,
    type,
    attributeHits,
    optionHits,
    priceHit,
    wanted: total,
  };
}

function hasAttribute({ product, attributes }: Purchase, wanted: string): boolean {
  return (
    attributes.some((own) => tokenSetRatio(own, wanted) > ALIKE) ||
    product.title.toLowerCase().includes(wanted) ||
    product.bullets.join(" ").toLowerCase().includes(wanted) ||
    product.description.toLowerCase().includes(wanted)
  );
}

function countOptionHits(
  wanted: readonly WantedOption[],
  chosen: readonly string[],
  colours: readonly string[],
): number {
  const values = chosen.map((value) => colours.find((colour) => value.includes(colour)) ?? value);
  return wanted.filter((option) => {
    const target = normalise(option, colours);
    return values.some((value) => tokenSetRatio(value, target) > ALIKE);
  }).length;
}

/** A wanted option as it is compared; one with a name keeps it, unless it is exactly a colour. */
function normalise(option: WantedOption, colours: readonly string[]): string {
  const colour = colours.find((word) => option.includes(word));
  if (colour !== undefined) return colour;
  return typeof option === "string" ? option : `(${option.map(textRepr).join(", ")})`;
}

function typeScore(wanted: Product, bought: Product): number {
  const titles = titleScore(wanted.title, bought.title);
  if (titles === 0) return 0;
  if (titles < 0.1) return 0.1;
  return wanted.query === bought.query || sameCategory(wanted, bought) || titles > 0.2 ? 1 : 0.5;
}

/** Whether the paths to the two kinds share at least two parts. */
function sameCategory(wanted: Product, bought: Product): boolean {
  const parts = (product: Product): ReadonlySet<string> =>
    new Set(product.productCategory.split("›").map((part) => part.trim()));
  const own = parts(bought);
  return [...parts(wanted)].filter((part) => own.has(part)).length >= 2;
}

function titleScore(wanted: string, bought: string): number {
  const nouns = nounsOf(wanted);
  if (nouns.length === 0) return 0.2;
  const own = new Set(nounsOf(bought));
  return new Set(nouns.filter((noun) => own.has(noun))).size / nouns.length;
}

/**
 * Words that are no nouns. The original asks spaCy's en_core_web_sm for tokens tagged NOUN or PROPN. That
 * tagger reads the capitalised words of a title mostly as proper nouns, so here every word is a noun
 * unless it is a number, a function word, a common adjective, adverb or participle of product titles,
 * or has an adjective's ending. It can differ for adjectives that spaCy takes for names, for
 * hyphenated words (both split them) and for units; it only matters if title, query and category
 * leave the kind open.
 */
const notNouns: ReadonlySet<string> = new Set(
  // Function words.
  (
    "a about above across after all also an and any are as at be been before below between both but by can do does down each either every for from had has have he her here his how i if in inside into is it its just less like many may me more most much must my near no nor not of off on only onto or other our out outside over own per same she should so some such than that the their them then there these they this those through to too under until up upon us very was we were what when where which while who whose will with within without you your " +
    // Adjectives, adverbs, participles.
    "adjustable advanced amazing antique assorted automatic available beautiful best better big bold bright casual cheap classic clean clear colorful comfortable comfy compact compatible cool cozy curved cute daily dark decorative deep delicious digital disposable distressed double dual durable easy elastic elegant electric extra fast fine first flat flexible floral formal free fresh full fun funny general gentle good great handmade happy heavy high hidden hooded hot huge large last late light lightweight little long loose lovely low main mini modern multi natural new nice non nordic old open organic original outdoor perfect personalized plain plus portable premium printed professional pure quick quiet random real reclaimed removable rich round royal rustic safe scented sexy sharp short silent similar simple single sleeveless slim small smart smooth soft solid special square stainless standard stretchy strong stylish super sweet tall thick thin tight tiny top traditional true ultra unique universal unscented upholstered useful vintage vivid warm washable wide wild wireless wooden young " +
    // Verbs.
    "add bring buy come enjoy fit fits get give go help helps include includes including keep keeps let look love made make makes making need see show showed take use used using want wear"
  ).split(" "),
);

const adjectiveEnding = /(?:able|ible|ful|less|ous|ive|ish|ly|proof|resistant)$/;

/** The nouns of a title, lower-case, in order and with repetitions. */
export function nounsOf(title: string): readonly string[] {
  const words = title.toLowerCase().match(/[\p{L}\p{M}\p{N}]+/gu) ?? [];
  return words.filter(
    (word) =>
      /^\p{L}/u.test(word) && word.length > 1 && !notNouns.has(word) && !adjectiveEnding.test(word),
  );
}

/**
 * The similarity of two short texts as sets of words, from 0 to 100: thefuzz's `token_set_ratio`
 * over Python's difflib, whose matching blocks (Ratcliff–Obershelp) differ from edit distance.
 */

/** The similarity of two texts by their common words and the remaining words of each. */
export function tokenSetRatio(a: string, b: string): number {
  const left = words(a);
  const right = words(b);
  if (left.size === 0 || right.size === 0) return 0;
  const common = [...left].filter((word) => right.has(word)).sort(byCodePoint);
  const shared = common.join(" ");
  const all = (own: ReadonlySet<string>, other: ReadonlySet<string>): string =>
    [...common, ...[...own].filter((word) => !other.has(word)).sort(byCodePoint)].join(" ");
  const first = all(left, right);
  const second = all(right, left);
  return Math.max(ratio(shared, first), ratio(shared, second), ratio(first, second));
}

function words(text: string): ReadonlySet<string> {
  const cleaned = text
    .replace(/[\u0080-\u00ff]/g, "")
    .replace(/[^\p{L}\p{N}_]/gu, " ")
    .toLowerCase();
  return new Set(cleaned.split(" ").filter((word) => word !== ""));
}

function byCodePoint(a: string, b: string): number {
  const left = Array.from(a, (one) => one.codePointAt(0)!);
  const right = Array.from(b, (one) => one.codePointAt(0)!);
  for (let at = 0; at < Math.min(left.length, right.length); at++) {
    if (left[at] !== right[at]) return left[at]! - right[at]!;
  }
  return left.length - right.length;
}

function ratio(a: string, b: string): number {
  if (a === b) return 100;
  if (a === "" || b === "") return 0;
  const left = Array.from(a);
  const right = Array.from(b);
  return roundHalfEven(100 * ((2 * matched(left, right)) / (left.length + right.length)));
}

function roundHalfEven(value: number): number {
  const floor = Math.floor(value);
  if (value - floor !== 0.5) return Math.round(value);
  return floor % 2 === 0 ? floor : floor + 1;
}

/**
 * Characters in the matching blocks: the longest common run, then recursively left and right of it.
 */
function matched(a: readonly string[], b: readonly string[]): number {
  const places = placesOf(b);
  let total = 0;
  const open: [number, number, number, number][] = [[0, a.length, 0, b.length]];
  for (let part = open.pop(); part !== undefined; part = open.pop()) {
    const [fromA, toA, fromB, toB] = part;
    const [atA, atB, size] = longestRun(a, b, places, part);
    if (size === 0) continue;
    total += size;
    open.push([fromA, atA, fromB, atB], [atA + size, toA, atB + size, toB]);
  }
  return total;
}

/** The positions of each character; like difflib, without the most frequent ones of a long text. */
function placesOf(b: readonly string[]): ReadonlyMap<string, readonly number[]> {
  const places = new Map<string, number[]>();
  for (const [at, character] of b.entries()) {
    const known = places.get(character);
    if (known === undefined) places.set(character, [at]);
    else known.push(at);
  }
  if (b.length >= 200) {
    const most = Math.floor(b.length / 100) + 1;
    for (const [character, found] of places) if (found.length > most) places.delete(character);
  }
  return places;
}

/** The longest run within the ranges; of several, the earliest in `a`, then the earliest in `b`. */
function longestRun(
  a: readonly string[],
  b: readonly string[],
  places: ReadonlyMap<string, readonly number[]>,
  [fromA, toA, fromB, toB]: readonly [number, number, number, number],
): readonly [number, number, number] {
  let bestA = fromA;
  let bestB = fromB;
  let size = 0;
  let lengths = new Map<number, number>();
  for (let atA = fromA; atA < toA; atA++) {
    const next = new Map<number, number>();
    for (const atB of places.get(a[atA]!) ?? []) {
      if (atB < fromB) continue;
      if (atB >= toB) break;
      const length = (lengths.get(atB - 1) ?? 0) + 1;
      next.set(atB, length);
      if (length > size) {
        bestA = atA - length + 1;
        bestB = atB - length + 1;
        size = length;
      }
    }
    lengths = next;
  }
  // Characters that were dropped from `places` still extend a run.
  while (bestA > fromA && bestB > fromB && a[bestA - 1] === b[bestB - 1]) {
    bestA--;
    bestB--;
    size++;
  }
  while (bestA + size < toA && bestB + size < toB && a[bestA + size] === b[bestB + size]) size++;
  return [bestA, bestB, size];
}

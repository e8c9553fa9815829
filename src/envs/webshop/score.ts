/** The score of a purchase: how well it matches what was wanted, from 0 to 1. */
import { textRepr } from "../python-text.js";
import type { Goal, WantedOption } from "./goals.js";
import type { Product } from "./product.js";
import { tokenSetRatio } from "./token-set-ratio.js";

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

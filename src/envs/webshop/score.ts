/** The score of a purchase: how well it matches what was wanted, from 0 to 1. */

import { textRepr } from "../python-text.js";
import type { Goal, WantedOption } from "./goals.js";
import { nounsOf } from "./nouns.js";
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

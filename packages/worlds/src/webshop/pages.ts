/** The pages of the shop: their text and what can be clicked on them. */

import { floatText, jsonText, strip } from "@pawl/core/envs/python-text.js";
import { type Catalogue, type Product, priceTag } from "./catalogue.js";

/** A location in the shop. Values are replaced, never changed. */
export type Place =
  | { readonly page: "index" }
  | ({ readonly page: "search_results" } & Results)
  | ({ readonly page: "item_page" } & Item)
  | ({ readonly page: "item_sub_page"; readonly section: Section } & Item)
  | {
      readonly page: "done";
      readonly asin: string;
      readonly options: Options;
      readonly score: number;
    };

/** A list of products and which part of it is shown. */
export interface Results {
  readonly products: readonly number[];
  /** Number of the page, from 1. */
  readonly number: number;
  /** Products on a page (the original's ten, if absent). */
  readonly perPage?: number | undefined;
}

/** A product, the results it was opened from, and the options chosen so far. */
export interface Item {
  readonly results: Results;
  readonly product: number;
  readonly options: Options;
}

/** Chosen values by option name. */
type Options = ReadonlyMap<string, string>;

/** The parts of a product that have their own page. */
export const sections = ["description", "features", "reviews"] as const;
export type Section = (typeof sections)[number];

/** As in the original. */
export const RESULTS_PER_PAGE = 10;
const SEPARATOR = " [SEP] ";
const THANKS = "Thank you for shopping with us!";

/** The products on a page of results. */
export function shown({
  products,
  number,
  perPage = RESULTS_PER_PAGE,
}: Results): readonly number[] {
  return products.slice((number - 1) * perPage, number * perPage);
}

/** The text of the page. */
export function pageText(catalogue: Catalogue, instruction: string, place: Place): string {
  return segments(catalogue, instruction, place).flatMap(trimmed).join(SEPARATOR);
}

/**
 * What follows the instruction on the page, each segment in quotes: what verl-agent shows to a
 * policy, whose prompt states the instruction once. The last page has none and stays whole.
 */
export function textAfterInstruction(
  catalogue: Catalogue,
  instruction: string,
  place: Place,
): string {
  if (place.page === "done") return pageText(catalogue, instruction, place);
  return segmentsAfter(catalogue, instruction, place)
    .map((segment) => `'${segment}'`)
    .join(SEPARATOR);
}

/**
 * What follows the instruction, a segment on each line after a blank, in lower case: what can be
 * clicked is written with the tokens that it has in the instruction and in actions with blanks. The
 * last page only says that something was bought.
 */
export function linesAfterInstruction(
  catalogue: Catalogue,
  instruction: string,
  place: Place,
): string {
  const lines = place.page === "done" ? [THANKS] : segmentsAfter(catalogue, instruction, place);
  return lines
    .map((line) => ` ${line}`)
    .join("\n")
    .toLowerCase();
}

function segmentsAfter(catalogue: Catalogue, instruction: string, place: Place): readonly string[] {
  const all = segments(catalogue, instruction, place);
  return all.slice(all.indexOf(instruction) + 1).flatMap(trimmed);
}

/** What can be clicked, in the original's order: buttons, products, options. */
export function clickables(catalogue: Catalogue, place: Place): readonly string[] {
  switch (place.page) {
    case "index":
      return ["search"];
    case "search_results": {
      const asins = shown(place).map((number) => catalogue.product(number).asin.toLowerCase());
      const previous = place.number > 1 ? ["< prev"] : [];
      return ["back to search", ...previous, "next >", ...asins];
    }
    case "item_page": {
      const values = catalogue.product(place.product).options.flatMap((group) => group.values);
      return [...new Set(["back to search", "< prev", ...sections, "buy now", ...values])];
    }
    case "item_sub_page":
      return ["back to search", "< prev"];
    case "done":
      return [];
  }
}

function segments(catalogue: Catalogue, instruction: string, place: Place): readonly string[] {
  const heading = ["Instruction:", instruction];
  switch (place.page) {
    case "index":
      return ["WebShop", ...heading, "Search"];
    case "search_results":
      return [
        ...heading,
        "Back to Search",
        `Page ${place.number} (Total results: ${place.products.length})`,
        ...(place.number > 1 ? ["< Prev"] : []),
        "Next >",
        ...shown(place).flatMap((number) => resultSegments(catalogue.product(number))),
      ];
    case "item_page":
      return [
        ...heading,
        "Back to Search",
        "< Prev",
        ...itemSegments(catalogue.product(place.product)),
      ];
    case "item_sub_page":
      return [
        ...heading,
        "Back to Search",
        "< Prev",
        ...sectionSegments(catalogue.product(place.product), place.section),
      ];
    case "done":
      return doneSegments(place.asin, place.options, place.score);
  }
}

function resultSegments(product: Product): readonly string[] {
  return [product.asin, product.title, priceTag(product)];
}

function itemSegments(product: Product): readonly string[] {
  return [
    ...product.options.flatMap(({ name, values }) => [name, ...values]),
    product.title,
    `Price: ${priceTag(product)}`,
    "Rating: N.A.",
    "Description",
    "Features",
    "Reviews",
    "Buy Now",
  ];
}

function sectionSegments(product: Product, section: Section): readonly string[] {
  switch (section) {
    case "description":
      return [product.description];
    case "features":
      // The original puts a blank after each, so that even an empty one leaves a segment.
      return product.bullets.map((bullet) => `${bullet} `);
    case "reviews":
      return [];
  }
}

function doneSegments(asin: string, options: Options, score: number): readonly string[] {
  return [
    THANKS,
    ...["Your code:", "None", "(Paste it in your MTurk interface.)"],
    ...["Purchased", "asin", asin, "options", jsonText(options)],
    ...["attrs", "None", "category", "None", "query", "None", "product category", "None"],
    ...["Target", "asin", "options", "attrs", "price upper", "instuction text"],
    ...["category", "product category", "query", "Goal", "None"],
    ...["Reward", "Your score (min 0.0, max 1.0)", floatText(score), "Reward Details", "None"],
  ];
}

/** A segment as in the page's text: trimmed; none if it is empty or only a line break. */
function trimmed(text: string): readonly string[] {
  if (text === "") return [];
  const bare = strip(text);
  return bare === "" && text.includes("\n") ? [] : [bare];
}

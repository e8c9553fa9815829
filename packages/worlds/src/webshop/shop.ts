/** The shop as a state machine: an action leads from one location to the next. */
import { createRandom, mixSeed } from "@pawl/core/random.js";
import { type Catalogue, MOST_RESULTS } from "./catalogue.js";
import type { Goal } from "./goals.js";
import {
  clickables,
  type Item,
  type Place,
  type Results,
  type Section,
  sections,
  shown,
} from "./pages.js";
import { type Score, scorePurchase } from "./score.js";

/** Everything that stays the same between episodes. */
export interface Shop {
  readonly catalogue: Catalogue;
  /** The price of each product, which its page may show as a range. */
  readonly prices: Float64Array;
  readonly colours: readonly string[];
  /** Products on a page of results (the original's ten, if absent). */
  readonly perPage?: number | undefined;
}

/** The result of an action. */
export interface Move {
  readonly place: Place;
  /** Whether the action was understood and possible. */
  readonly valid: boolean;
  /** The score, if something was bought. */
  readonly score?: Score;
}

/** A parsed action: `search[red hat]` is a search for `red hat`. */
export interface ParsedAction {
  readonly name: string;
  readonly argument: string;
}

/** The click that buys the product on the page, irreversibly. */
export const BUY = "buy now";

/**
 * Parses an action as the original does: the last `[` that leaves something before the last `]` of
 * the first line; whatever follows is ignored.
 */
export function parseAction(action: string): ParsedAction | undefined {
  const lineEnd = action.indexOf("\n");
  const line = lineEnd < 0 ? action : action.slice(0, lineEnd);
  const close = line.lastIndexOf("]");
  const open = close < 2 ? -1 : line.lastIndexOf("[", close - 2);
  if (open < 1) return undefined;
  return { name: line.slice(0, open), argument: line.slice(open + 1, close).toLowerCase() };
}

/** Carries out an action. */
export function move(shop: Shop, goal: Goal, place: Place, action: string): Move {
  const parsed = parseAction(action);
  if (parsed?.name === "search") {
    const products = search(shop, parsed.argument);
    return { place: resultsPage({ products, number: 1, perPage: shop.perPage }), valid: true };
  }
  if (parsed?.name === "click" && parsed.argument !== "search") {
    const { argument } = parsed;
    if (clickables(shop.catalogue, place).includes(argument))
      return click(shop, goal, place, argument);
  }
  return { place, valid: false };
}

function resultsPage(results: Results): Place {
  return { page: "search_results", ...results };
}

/**
 * The products for a query; its first word may instead ask for a department, a query or random
 * products.
 */
function search({ catalogue }: Shop, query: string): readonly number[] {
  const [first, ...rest] = query.split(" ");
  switch (first) {
    case "<c>":
      return catalogue.inCategory(rest[0] ?? "");
    case "<q>":
      return catalogue.withQuery(rest.join(" "));
    case "<r>": {
      // The original draws again each time; here the same words find the same products.
      const random = createRandom(mixSeed("random products", query));
      const found = new Set<number>();
      while (found.size < Math.min(MOST_RESULTS, catalogue.count))
        found.add(random.int(catalogue.count));
      return [...found];
    }
    case "<a>":
      // The original crashes here.
      return [];
    default:
      return catalogue.search(query);
  }
}

/** A click on something that is on the page. */
function click(shop: Shop, goal: Goal, place: Place, label: string): Move {
  if (label === "back to search") return { place: { page: "index" }, valid: true };
  switch (place.page) {
    case "search_results":
      return { place: clickResults(shop, place, label), valid: true };
    case "item_page":
      return clickItem(shop, goal, place, label);
    case "item_sub_page":
      return { place: itemPage(place), valid: true };
    default:
      return { place, valid: false };
  }
}

function clickResults({ catalogue }: Shop, place: Results, label: string): Place {
  const { products, number, perPage } = place;
  const results: Results = { products, number, perPage };
  if (label === "next >") return resultsPage({ ...results, number: number + 1 });
  if (label === "< prev") return resultsPage({ ...results, number: number - 1 });
  const product = shown(results).find(
    (one) => catalogue.product(one).asin.toLowerCase() === label,
  ) as number;
  return { page: "item_page", results, product, options: new Map() };
}

function itemPage({ results, product, options }: Item): Place {
  return { page: "item_page", results, product, options };
}

function clickItem(shop: Shop, goal: Goal, item: Item, label: string): Move {
  const { results, product, options } = item;
  if (label === "< prev") return { place: resultsPage(results), valid: true };
  if (label === BUY) return buy(shop, goal, item);
  if ((sections as readonly string[]).includes(label)) {
    const section = label as Section;
    return { place: { page: "item_sub_page", results, product, options, section }, valid: true };
  }
  const { options: groups } = shop.catalogue.product(product);
  // A value that two options share belongs to the later one.
  const group = groups.filter((one) => one.values.includes(label)).at(-1)!;
  const chosen = new Map(options).set(group.name, label);
  return { place: itemPage({ results, product, options: chosen }), valid: true };
}

function buy(shop: Shop, goal: Goal, item: Item): Move {
  const score = scoreItem(shop, goal, item);
  const { asin } = shop.catalogue.product(item.product);
  return {
    place: { page: "done", asin, options: item.options, score: score.score },
    valid: true,
    score,
  };
}

/** The score of the item if it were bought now. */
export function scoreItem(
  shop: Shop,
  goal: Goal,
  { product, options }: Omit<Item, "results">,
): Score {
  const { catalogue, prices, colours } = shop;
  const purchase = {
    product: catalogue.product(product),
    attributes: catalogue.attributes(product),
    price: prices[product]!,
    options: [...options.values()],
  };
  return scorePurchase(goal, catalogue.product(goal.product), purchase, colours);
}

/**
 * The expert: it searches with the words of the goal, opens the first product that would score full
 * marks, or the goal's own, chooses its options and buys it. It knows scores and products, but a reader of the pages
 * could act the same way.
 */
import type { Goal } from "./goals.js";
import { type Item, type Place, type Results, shown } from "./pages.js";
import { BUY, type Shop, scoreItem } from "./shop.js";
import type { Visit } from "./shop-env.js";

/** The expert's next action. */
export function nextAction(shop: Shop, { goal, place }: Visit): string {
  switch (place.page) {
    case "search_results":
      return chooseResult(shop, goal, place);
    case "item_page":
      return chooseOption(shop, goal, place);
    case "item_sub_page":
      return "click[< prev]";
    case "index":
    case "done":
      return `search[${goalQuery(shop, goal)}]`;
  }
}

/** The words of a goal to search with: its attributes and its kind. */
export function goalQuery({ catalogue }: Shop, goal: Goal): string {
  return [...goal.attributes, catalogue.product(goal.product).query].join(" ");
}

function chooseResult(shop: Shop, goal: Goal, results: Results): string {
  const { catalogue } = shop;
  const fitting = shown(results).find((product) => fits(shop, goal, product));
  if (fitting !== undefined) return `click[${catalogue.product(fitting).asin.toLowerCase()}]`;
  const at = results.products.indexOf(goal.product);
  if (at < 0) return `search[${catalogue.product(goal.product).title.toLowerCase()}]`;
  const before =
    at < results.products.indexOf(shown(results)[0] ?? -1) || shown(results).length === 0;
  return before ? "click[< prev]" : "click[next >]";
}

function chooseOption(shop: Shop, goal: Goal, item: Item & Place): string {
  const wanted = wantedOptions(shop, goal, item.product);
  if (wanted === undefined || !fits(shop, goal, item.product)) return "click[< prev]";
  for (const [name, value] of wanted) {
    if (item.options.get(name) !== value) return `click[${value}]`;
  }
  return `click[${BUY}]`;
}

/** Whether to buy a product: one that scores full marks, or the goal's own, which is the best of the others. */
function fits(shop: Shop, goal: Goal, product: number): boolean {
  const options = wantedOptions(shop, goal, product);
  if (options === undefined) return false;
  return product === goal.product || scoreItem(shop, goal, { product, options }).score === 1;
}

/** The wanted options as the product has them; undefined if it lacks one. */
function wantedOptions(
  shop: Shop,
  goal: Goal,
  product: number,
): ReadonlyMap<string, string> | undefined {
  const { options: groups } = shop.catalogue.product(product);
  const options = new Map<string, string>();
  for (const wanted of goal.options) {
    // People's goals state a value without its option's name.
    const [name, value] =
      typeof wanted === "string"
        ? [groups.find(({ values }) => values.includes(wanted))?.name, wanted]
        : wanted;
    const group = groups.find((one) => one.name === name);
    if (group === undefined || !group.values.includes(value)) return undefined;
    options.set(group.name, value);
  }
  return options;
}

/**
 * The shop as an environment: one goal at a time, at most fifteen steps, and a purchase ends the
 * episode.
 */
import { begun, type Env, EnvError, type StepResult, type Task } from "@pawl/core/envs/env.js";
import type { Goal } from "./goals.js";
import {
  clickables,
  type Item,
  linesAfterInstruction,
  type Place,
  pageText,
  type Results,
  shown,
  textAfterInstruction,
} from "./pages.js";
import { BUY, move, parseAction, type Shop, scoreItem } from "./shop.js";

/** The reward for buying exactly what was wanted. */
export const SUCCESS_REWARD = 10;

/** Says that any words can be searched for. It is a valid search itself, for its own words. */
const SEARCH_HINT = "search[<your query>]";

/** What of a page is observed. */
type Observations = keyof typeof texts;

const texts = {
  page: pageText,
  "after-instruction": textAfterInstruction,
  lines: linesAfterInstruction,
};

/** What the environments of one opened shop share. */
export interface ShopWorld {
  readonly shop: Shop;
  goalOf(task: Task): Goal;
  readonly observations: Observations;
  /** Whether purchases that are nearly right are rewarded by their score, or not at all. */
  readonly reward: "success" | "score";
  /** Queries listed as admissible on the first page. */
  suggestions(goal: Goal): readonly string[];
}

/** The state of an episode. */
export interface Visit {
  readonly goal: Goal;
  readonly place: Place;
}

/** A running shop, with what its expert sees. */
export interface ShopEnv extends Env {
  readonly visit: Visit;
}

/** An environment in the shop. */
export function createShopEnv(world: ShopWorld, started?: Visit): ShopEnv {
  const { shop } = world;
  const textOf = texts[world.observations];
  const read = world.observations === "lines" ? withoutBlanks : (action: string) => action;
  let visit = started;
  let admissible: readonly string[] | undefined;
  const current = (asked: string): Visit => begun(visit, "webshop", asked);
  return {
    get goal() {
      return current("goal").goal.text;
    },
    get taskType() {
      return current("taskType").goal.category;
    },
    get visit() {
      return current("the expert");
    },
    reset(task) {
      visit = { goal: world.goalOf(task), place: { page: "index" } };
      admissible = undefined;
      return textOf(shop.catalogue, visit.goal.text, visit.place);
    },
    step(action): StepResult {
      const { goal, place } = current("step");
      if (place.page === "done")
        throw new EnvError("webshop: step was called after the purchase; call reset(task).");
      const moved = move(shop, goal, place, read(action));
      visit = { goal, place: moved.place };
      if (moved.place !== place) admissible = undefined;
      const score = moved.score?.score ?? 0;
      const success = score === 1;
      return {
        observation: textOf(shop.catalogue, goal.text, moved.place),
        reward: SUCCESS_REWARD * (world.reward === "score" ? score : Number(success)),
        done: moved.score !== undefined,
        info: { valid: moved.valid, success, score },
      };
    },
    admissibleActions() {
      admissible ??= listActions(world, current("admissibleActions"));
      return admissible;
    },
    irreversible(action) {
      const { place } = current("irreversible");
      const parsed = parseAction(read(action));
      return place.page === "item_page" && parsed?.name === "click" && parsed.argument === BUY;
    },
    clone: () => createShopEnv(world, visit),
  };
}

/** An action with a blank on both sides of its argument, as pages in lines write their parts. */
export function withBlanks(action: string): string {
  return action.replace(/\[(.*)\]$/, "[ $1 ]");
}

function withoutBlanks(action: string): string {
  return action.replace(/\[ (.*) \]$/, "[$1]");
}

function listActions(world: ShopWorld, { goal, place }: Visit): readonly string[] {
  if (place.page === "index") {
    const queries = world.suggestions(goal).map((query) => `search[${query}]`);
    return [...new Set([SEARCH_HINT, ...queries])].sort();
  }
  const labels = clickables(world.shop.catalogue, place).filter(isClickable);
  return [...new Set(labels.map((label) => `click[${label}]`))].sort();
}

/**
 * Labels with brackets or line breaks in the wrong places cannot be written in the action grammar.
 */
function isClickable(label: string): boolean {
  const parsed = parseAction(`click[${label}]`);
  return parsed?.name === "click" && parsed.argument === label;
}

// The expert: it searches with the words of the goal, opens the first product that would score full
// marks, or the goal's own, chooses its options and buys it. It knows scores and products, but a reader of the pages
// could act the same way.

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

/**
 * The shop as an environment: one goal at a time, at most fifteen steps, and a purchase ends the
 * episode.
 */
import { begun, type Env, EnvError, type StepResult, type Task } from "../env.js";
import type { Goal } from "./goals.js";
import {
  clickables,
  linesAfterInstruction,
  type Place,
  pageText,
  textAfterInstruction,
} from "./pages.js";
import { BUY, move, parseAction, type Shop } from "./shop.js";

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

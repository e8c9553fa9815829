/**
 * WebShop: an online shop in text, in which an agent searches, looks at products, chooses options
 * and buys. With the official files it is the environment of Yao et al. (2022), page by page;
 * without them it sells a made-up catalogue.
 *
 * Splits as in verl-agent: the first 500 goals are `test`, the others `train` (in a small
 * catalogue, `test` is the first fifth). A task is named by its split and the original's number of
 * its goal.
 */

import { defineEnv } from "@pawl/core/envs/define-env.js";
import { type Env, EnvError, type Environment, type Task } from "@pawl/core/envs/env.js";
import { taskLists } from "@pawl/core/envs/task-lists.js";
import { createRandom, mixSeed } from "@pawl/core/random.js";
import type { EnvPrompt } from "@pawl/core/text/prompt.js";
import { folder } from "@pawl/core/trust/reach.js";
import { z } from "zod";
import type { Catalogue } from "./catalogue.js";
import { drawPrices, type Goal, type Goals, makeGoals } from "./goals.js";
import { openMadeCatalogue } from "./made-catalogue.js";
import { findProductFile, indexPath, openOfficialCatalogue } from "./official-catalogue.js";
import { RESULTS_PER_PAGE } from "./pages.js";
import { createPythonRandom } from "./python-random.js";
import { replayWebshop } from "./replay.js";
import { COLOUR_FILE, colours, findColours } from "./score.js";
import type { Shop } from "./shop.js";
import {
  createShopEnv,
  goalQuery,
  nextAction,
  type ShopEnv,
  type ShopWorld,
  SUCCESS_REWARD,
  withBlanks,
} from "./shop-env.js";

/** A web store in text. */
export const shopPrompt: EnvPrompt = {
  instructions:
    "You shop in a simulated web store. You search for products and click what is on the page, one action at a time.",
  advice:
    "First reason step by step about the situation and about which action brings the purchase closest to what is wanted",
};

const STEP_LIMIT = 15;
const TEST_GOALS = 500;
const MADE_UP = "made-up";
const MADE_PRODUCTS = 1000;
const MADE_SUGGESTIONS = 4;

/** The options of the shop. */
const webshopOptions = z.strictObject({
  data: z
    .string()
    .optional()
    .describe(
      `folder with the official files, or the file with the products; ${MADE_UP} for the made-up catalogue (default: $WEBSHOP_DATA, or ${MADE_UP})`,
    ),
  goals: z
    .enum(["synthetic", "human"])
    .default("synthetic")
    .describe(
      "goals generated from product attributes, or written by people (official files only)",
    ),
  products: z
    .int()
    .min(1)
    .optional()
    .describe(
      `number of products, the first of the catalogue (default: all; made-up: ${MADE_PRODUCTS})`,
    ),
  suggestions: z
    .int()
    .min(0)
    .optional()
    .describe(
      `queries to list as admissible on the first page, for policies that only choose (default: 0; made-up: ${MADE_SUGGESTIONS})`,
    ),
  observations: z
    .enum(["page", "after-instruction", "lines"])
    .default("page")
    .describe(
      "what the policy sees: the page; what follows the instruction, in quotes, as in verl-agent; or that in lower case, a part per line, for small models (actions may have blanks: click[ navy ])",
    ),
  perPage: z
    .int()
    .min(1)
    .max(50)
    .default(RESULTS_PER_PAGE)
    .describe("products on a page of search results"),
  reward: z
    .enum(["success", "score"])
    .default("success")
    .describe(
      `what a purchase is worth: ${SUCCESS_REWARD} if it is exactly what was wanted, as in verl-agent, or ${SUCCESS_REWARD} times its score, the original's reward`,
    ),
  wording: z
    .enum(["rich", "plain"])
    .default("rich")
    .describe(
      "made-up catalogue: as rich as the original's, or plain for small models: short codes and titles, colour the only choice",
    ),
  seed: z
    .int()
    .min(0)
    .max(0xffffffff)
    .default(42)
    .describe("random seed for prices and made-up products"),
  cache: folder(z.string())
    .optional()
    .describe("cache folder for the index of a large catalogue (default: ~/.cache/pawl)"),
});

type Options = z.output<typeof webshopOptions>;

/** WebShop, for the registry. */
export const webshop = defineEnv({
  name: "webshop",
  summary: "an online shop in text: search, compare, choose options, buy",
  options: webshopOptions,
  open,
  describe,
});

function dataOf(options: Options): string | undefined {
  const data = options.data ?? (process.env.WEBSHOP_DATA || undefined);
  return data === MADE_UP ? undefined : data;
}

function open(options: Options): Environment {
  const data = dataOf(options);
  const catalogue = openCatalogue(options, data);
  const random = createPythonRandom(options.seed);
  const prices = drawPrices(catalogue, random);
  const goals = makeGoals(catalogue, prices, random);
  if (goals.count === 0)
    throw new EnvError(
      `webshop: ${data} has no goals of the kind ${options.goals}. Goals that people wrote are in items_human_ins.json, which belongs next to the products; goals: synthetic needs none.`,
    );
  const shop: Shop = {
    catalogue,
    prices,
    colours: data === undefined ? colours : findColours(data),
    perPage: options.perPage,
  };
  const suggestions = options.suggestions ?? (data === undefined ? MADE_SUGGESTIONS : 0);
  return {
    ...environment(shop, goals, { ...options, suggestions }),
    // The original compares an option together with its name, so that some goals match no purchase.
    ...(data !== undefined && { expertMayFail: true }),
    replayRecords(records) {
      if (data === undefined)
        throw new EnvError(
          "webshop: recordings use the official products. Set data (or WEBSHOP_DATA) to their folder.",
        );
      return replayWebshop(records, data);
    },
  };
}

function openCatalogue(options: Options, data: string | undefined): Catalogue {
  const { products, goals, cache } = options;
  if (data !== undefined) {
    if (options.wording !== "rich")
      throw new EnvError(
        `webshop: wording is about the made-up catalogue, and ${data} has products of its own: leave one of them out.`,
      );
    return openOfficialCatalogue({ data, wishes: goals, products, cache });
  }
  if (goals === "human")
    throw new EnvError(
      "webshop: goals that people wrote come with the official files. Set data (or WEBSHOP_DATA) to their folder, or use goals: synthetic.",
    );
  if (cache !== undefined)
    throw new EnvError(
      "webshop: cache is for the index of the official products, and the made-up catalogue keeps none: leave it out, or set data (or WEBSHOP_DATA) to the folder of the official files.",
    );
  return openMadeCatalogue(products ?? MADE_PRODUCTS, options.seed, options.wording);
}

function environment(
  shop: Shop,
  goals: Goals,
  {
    suggestions,
    observations,
    reward,
  }: Pick<Options, "observations" | "reward"> & { readonly suggestions: number },
): Environment {
  const test = Math.min(TEST_GOALS, Math.ceil(goals.count / 5));
  const tasksOf = (split: string, from: number, to: number) => (): readonly Task[] =>
    Array.from({ length: to - from }, (_, at) => ({
      id: `${split}/${from + at}`,
      split,
      type: goals.category(from + at),
    }));
  const lists = taskLists("webshop", {
    train: tasksOf("train", test, goals.count),
    test: tasksOf("test", 0, test),
  });
  const world: ShopWorld = {
    shop,
    observations,
    reward,
    goalOf(task) {
      // Looked up first, so that an unlisted task is rejected and only listed ids are parsed.
      const { id, split } = lists.task(task.id);
      return goals.goal(Number(id.slice(split.length + 1)));
    },
    suggestions: (goal) => suggest(shop, goal, suggestions),
  };
  return {
    name: "webshop",
    ...lists,
    stepLimit: STEP_LIMIT,
    maxReturn: SUCCESS_REWARD,
    whiteSpace: "collapse",
    prompt: shopPrompt,
    create: () => createShopEnv(world),
    expert(env: Env) {
      if (!("visit" in env))
        throw new EnvError("The webshop expert plays webshop environments only, unwrapped.");
      const action = nextAction(shop, (env as ShopEnv).visit);
      return observations === "lines" ? withBlanks(action) : action;
    },
  };
}

/** Queries for a goal, the same each time: good ones, a minimal one and one for something else. */
function suggest(shop: Shop, goal: Goal, count: number): readonly string[] {
  const { catalogue } = shop;
  const random = createRandom(mixSeed("suggestions", goal.text));
  const { query } = catalogue.product(goal.product);
  const values = goal.options.map((option) => (typeof option === "string" ? option : option[1]));
  const queries = [goalQuery(shop, goal), query, [goalQuery(shop, goal), ...values].join(" ")];
  while (queries.length < count) queries.push(catalogue.product(random.int(catalogue.count)).query);
  // Brackets and line breaks would end the action early.
  return queries.slice(0, count).map((one) => one.replace(/[[\]\r\n]+/g, " "));
}

const HOW_TO_GET =
  "Official files: items_shuffle.json (1.18 million products) or items_shuffle_1000.json, with items_ins_v2.json or items_ins_v2_1000.json, and items_human_ins.json for goals: human. setup.sh of the WebShop repository (princeton-nlp/WebShop) names the addresses; put them into one folder and point WEBSHOP_DATA or the option data at it.";

function describe(options: Options): readonly string[] {
  const data = dataOf(options);
  if (data === undefined) {
    const count = options.products ?? MADE_PRODUCTS;
    return [
      `a made-up catalogue of ${count} products (seed ${options.seed}); nothing to download`,
      HOW_TO_GET,
    ];
  }
  try {
    return [...describeOfficial(options, data), HOW_TO_GET];
  } catch (error) {
    if (error instanceof EnvError) return [error.message, HOW_TO_GET];
    throw error;
  }
}

function describeOfficial(options: Options, data: string): readonly string[] {
  const path = findProductFile(data);
  return [
    `products from ${path}, goals: ${options.goals}`,
    `the index of a large catalogue is kept in ${indexPath(path, options)}`,
    findColours(data) === colours
      ? `colour words: our own; for the original's exact scores put its ${COLOUR_FILE} beside the data`
      : `colour words: from ${COLOUR_FILE}`,
    "the kind of a product is compared by our own tagger of nouns, where the original uses spaCy",
  ];
}

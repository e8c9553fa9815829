import { dose } from "@pawl/core/dose-testing.js";
import type { Env } from "@pawl/core/envs/env.js";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createSearcher } from "../retrieval/bm25.js";
import { createIndexBuilder } from "../retrieval/bm25-build.js";
import {
  type Catalogue,
  createCatalogue,
  createWordColumn,
  type Product,
  searchText,
} from "./catalogue.js";
import { drawPrices, type Goal, makeGoals } from "./goals.js";
import { clickables, type Place, pageText, textAfterInstruction } from "./pages.js";
import { createPythonRandom } from "./python-random.js";
import { colours, nounsOf, scorePurchase } from "./score.js";
import { move, parseAction, type Shop } from "./shop.js";
import { createShopEnv, type ShopWorld } from "./shop-env.js";

function product(number: number, changes: Partial<Product> = {}): Product {
  return {
    asin: `B${number}`,
    title: `Lamp Number ${number}`,
    description: "",
    bullets: ["  bright ", ""],
    prices: [10 + number],
    options: [],
    category: number % 2 === 0 ? "garden" : "home",
    query: "lamps",
    productCategory: "Home › Lamps › Desk",
    ...changes,
  };
}

const products = [
  product(0, {
    description: " Good \n light ",
    options: [
      { name: "size", values: ["big", "both", "[odd]", "a]b", ""] },
      { name: "color", values: ["red", "both", "lime"] },
    ],
  }),
  ...Array.from({ length: 24 }, (_, at) => product(at + 1)),
];

function catalogueOf(items: readonly Product[]): Catalogue {
  const builder = createIndexBuilder();
  const categories = createWordColumn();
  const queries = createWordColumn();
  for (const item of items) {
    builder.add(item.asin, searchText(item));
    categories.add(item.category);
    queries.add(item.query);
  }
  return createCatalogue({
    searcher: createSearcher(builder.finish()),
    prices: {
      low: Float64Array.from(items, (item) => item.prices[0]),
      high: Float64Array.from(items, (item) => item.prices[1] ?? Number.NaN),
    },
    categories: categories.finish(),
    queries: queries.finish(),
    product: (number) => items[number]!,
    attributes: () => ["bright light"],
    wishes: (number) => [{ text: `Find me lamp ${number}`, attributes: ["bright"] }],
  });
}

const catalogue = catalogueOf(products);
const prices = drawPrices(catalogue, createPythonRandom(1));
const shop: Shop = { catalogue, prices, colours };
const goals = makeGoals(catalogue, prices, createPythonRandom(1));
const goal: Goal = {
  product: 0,
  asin: "B0",
  category: "garden",
  text: "Find me a lamp",
  attributes: ["bright"],
  options: [["color", "red"]],
  priceLimit: 20,
};

function walk(...actions: readonly string[]): Place {
  let place: Place = { page: "index" };
  for (const action of actions) place = move(shop, goal, place, action).place;
  return place;
}

const textAt = (...actions: readonly string[]) => pageText(catalogue, goal.text, walk(...actions));

describe("the action grammar", () => {
  it.each([
    ["search[red hat]", { name: "search", argument: "red hat" }],
    ["click[Buy Now] and more", { name: "click", argument: "buy now" }],
    ["search[ A ]", { name: "search", argument: " a " }],
    ["search[a[b]", { name: "search[a", argument: "b" }],
    ["search[a]b]", { name: "search", argument: "a]b" }],
    ["search[]", undefined],
    ["search[]]", { name: "search", argument: "]" }],
    ["[x]", undefined],
    ["search[a\nb]", undefined],
    ["search[a]\nb]", { name: "search", argument: "a" }],
    ["search[a\u2028b\r]", { name: "search", argument: "a\u2028b\r" }],
    ["buy now", undefined],
    ["", undefined],
  ])("parses %j", (action, parsed) => expect(parseAction(action)).toEqual(parsed));

  it("agrees with the original's regular expression", () => {
    const part = fc.constantFrom("[", "]", "a", "\n", " ", "click", "x]");
    fc.assert(
      fc.property(fc.array(part, { maxLength: 12 }), (parts) => {
        const action = parts.join("");
        const [, name, argument] = /^([^\n]+)\[([^\n]+)\]/.exec(action) ?? [];
        expect(parseAction(action)).toEqual(name === undefined ? undefined : { name, argument });
      }),
      { numRuns: dose(2000) },
    );
  });
});

describe("the pages", () => {
  it("show what the original shows", () => {
    expect(textAt()).toBe("WebShop [SEP] Instruction: [SEP] Find me a lamp [SEP] Search");
    expect(textAt("search[lamp 3]", "click[next >]", "click[next >]")).toBe(
      "Instruction: [SEP] Find me a lamp [SEP] Back to Search [SEP] Page 3 (Total results: 25) [SEP] < Prev [SEP] Next > [SEP] B6 [SEP] Lamp Number 6 [SEP] $16.0 [SEP] B7 [SEP] Lamp Number 7 [SEP] $17.0 [SEP] B8 [SEP] Lamp Number 8 [SEP] $18.0 [SEP] B9 [SEP] Lamp Number 9 [SEP] $19.0 [SEP] B0 [SEP] Lamp Number 0 [SEP] $10.0",
    );
    expect(textAt("search[big]", "click[b0]")).toBe(
      "Instruction: [SEP] Find me a lamp [SEP] Back to Search [SEP] < Prev [SEP] size [SEP] big [SEP] both [SEP] [odd] [SEP] a]b [SEP] color [SEP] red [SEP] both [SEP] lime [SEP] Lamp Number 0 [SEP] Price: $10.0 [SEP] Rating: N.A. [SEP] Description [SEP] Features [SEP] Reviews [SEP] Buy Now",
    );
    const section = (name: string) => textAt("search[big]", "click[b0]", `click[${name}]`);
    expect(section("description")).toMatch(/< Prev \[SEP\] Good \n light$/);
    expect(section("features")).toMatch(/< Prev \[SEP\] bright \[SEP\] $/);
    expect(section("reviews")).toMatch(/< Prev$/);
  });

  it("go past the last result, and back", () => {
    const past = ["search[lamp]", "click[next >]", "click[next >]", "click[next >]"];
    expect(textAt(...past)).toMatch(/Page 4 \(Total results: 25\) \[SEP\] < Prev \[SEP\] Next >$/);
    expect(textAt(...past, "click[< prev]")).toBe(textAt(...past.slice(0, -1)));
  });

  it("keep chosen options on sub pages and forget them on leaving; a shared value is the later option's", () => {
    const chosen = [
      "search[big]",
      "click[b0]",
      "click[big]",
      "click[both]",
      "click[reviews]",
      "click[< prev]",
    ];
    const options = (place: Place) => ("options" in place ? [...place.options] : undefined);
    expect(options(walk(...chosen))).toEqual([
      ["size", "big"],
      ["color", "both"],
    ]);
    expect(options(walk(...chosen, "click[lime]"))).toEqual([
      ["size", "big"],
      ["color", "lime"],
    ]);
    expect(options(walk(...chosen, "click[< prev]", "click[b0]"))).toEqual([]);
  });

  it("find departments, queries and random products", () => {
    const found = (query: string) => {
      const place = walk(`search[${query}]`);
      return place.page === "search_results" ? place.products : [];
    };
    expect(found("<c> garden")).toHaveLength(13);
    expect(found("<q> lamps")).toHaveLength(25);
    expect(found("<r>")).toEqual(found("<r>"));
    expect(new Set(found("<r>")).size).toBe(25);
    expect([found("<a> bright"), found("<c>"), found("the")]).toEqual([[], [], []]);
  });

  it("change nothing for unknown actions", () => {
    const place = walk("search[big]", "click[b0]");
    for (const action of [
      "click[search]",
      "click[b1]",
      "Click[big]",
      "click [big]",
      "buy now",
      "click[]",
    ]) {
      expect(move(shop, goal, place, action)).toEqual({ place, valid: false });
    }
    expect(move(shop, goal, walk(), "click[search]").valid).toBe(false);
  });
});

describe("scores", () => {
  const buy = (...actions: readonly string[]) =>
    move(shop, goal, walk("search[big]", "click[b0]", ...actions), "click[buy now]").score;

  it("break down the purchase", () => {
    expect(buy("click[red]")).toEqual({
      score: 1,
      withoutType: 1,
      type: 1,
      attributeHits: 1,
      optionHits: 1,
      priceHit: true,
      wanted: 3,
    });
    expect(buy("click[lime]")).toMatchObject({ score: 2 / 3, optionHits: 0 });
    const dear: Goal = { ...goal, priceLimit: 9.99 };
    const place = walk("search[big]", "click[b0]", "click[red]");
    expect(move(shop, dear, place, "click[buy now]").score).toMatchObject({ priceHit: false });
  });

  it("show on the last page, from which only a search leads on", () => {
    const end = walk("search[big]", "click[b0]", "click[lime]", "click[buy now]");
    expect(pageText(catalogue, goal.text, end)).toContain(
      'B0 [SEP] options [SEP] {"color": "lime"} [SEP] attrs',
    );
    expect(pageText(catalogue, goal.text, end)).toContain("[SEP] 0.6666666666666666 [SEP]");
    expect(clickables(catalogue, end)).toEqual([]);
    expect(move(shop, goal, end, "search[lamp]").place.page).toBe("search_results");
  });

  it("treat colours with the same colour word as equal, unless the option has a name", () => {
    const bought = (options: readonly string[]) => ({
      product: products[0]!,
      attributes: [],
      price: 1,
      options,
    });
    const hits = (wanted: Goal["options"], chosen: readonly string[]) =>
      scorePurchase({ ...goal, options: wanted }, products[0]!, bought(chosen), colours).optionHits;
    expect(hits(["navy blue"], ["sky blue"])).toBe(1);
    expect(hits([["color", "blue"]], ["sky blue"])).toBe(1);
    expect(hits([["color", "navy blue"]], ["sky blue"])).toBe(1);
    expect(hits([["size", "standard"]], ["standard"])).toBe(0);
    expect(hits(["standard"], ["standard"])).toBe(1);
  });

  it("compare kinds of products by query, category and the nouns of the titles", () => {
    const type = (changes: Partial<Product>) =>
      scorePurchase(
        goal,
        product(0, { title: "Oak Desk Lamp Shade Bulb" }),
        {
          product: product(1, { query: "other", productCategory: "", ...changes }),
          attributes: [],
          price: 1,
          options: [],
        },
        colours,
      ).type;
    expect(type({ title: "Red Garden Hose" })).toBe(0);
    expect(type({ title: "Red Garden Hose", query: "lamps" })).toBe(0);
    expect(type({ title: "Desk Pad" })).toBe(0.5);
    expect(type({ title: "Desk Pad", query: "lamps" })).toBe(1);
    expect(type({ title: "Desk Pad", productCategory: "Lamps › Home" })).toBe(1);
    expect(type({ title: "Oak Lamp" })).toBe(1);
    expect(nounsOf("The 2 Adjustable Lamps, for the Desk (waterproof) W-40")).toEqual([
      "lamps",
      "desk",
    ]);
  });
});

describe("goals", () => {
  it("are one for each combination of options, with a round limit above the price", () => {
    expect(goals.count).toBe(5 * 3 + 24);
    const all = Array.from({ length: goals.count }, (_, number) => goals.goal(number));
    expect(new Set(all.map((one) => one.text)).size).toBe(goals.count);
    for (const one of all) {
      expect(one.priceLimit).toBeGreaterThan(prices[one.product]!);
      expect(one.priceLimit % 10).toBe(0);
      expect(one.text).toMatch(/, and price lower than \d+\.00 dollars$/);
    }
    expect(() => goals.goal(goals.count)).toThrow(/there are 39 goals/);
  });

  it("have no limit if the price is too high for one", () => {
    const dear = catalogueOf([product(0, { prices: [980] })]);
    const own = makeGoals(dear, drawPrices(dear, createPythonRandom(1)), createPythonRandom(1));
    expect(own.goal(0)).toMatchObject({ priceLimit: 1_000_000, text: "Find me lamp 0" });
  });
});

describe("what follows the instruction", () => {
  it.each([
    [[]],
    [["search[lamp]"]],
    [["search[lamp]", "click[next >]"]],
    [["search[lamp]", "click[b1]"]],
    [["search[lamp]", "click[b1]", "click[features]"]],
  ])("is the rest of the page, in quotes: %j", (actions) => {
    const rest = textAfterInstruction(catalogue, goal.text, walk(...actions));
    const [heading, whole] = textAt(...actions).split(` [SEP] ${goal.text} [SEP] `);
    expect(heading).toMatch(/^(WebShop \[SEP\] )?Instruction:$/);
    const quoted = whole!.split(" [SEP] ").map((segment) => `'${segment}'`);
    expect(rest).toBe(quoted.join(" [SEP] "));
  });

  it("is all of the last page, which has no instruction", () => {
    const end = walk("search[lamp]", "click[b1]", "click[buy now]");
    expect(textAfterInstruction(catalogue, goal.text, end)).toBe(
      pageText(catalogue, goal.text, end),
    );
  });

  it("is what an environment shows if its option says so, from the first observation on", () => {
    const world = { shop, goalOf: () => goal, suggestions: () => [] };
    const env = createShopEnv({ ...world, reward: "success", observations: "after-instruction" });
    expect(env.reset({ id: "test/0", split: "test", type: "garden" })).toBe("'Search'");
    expect(env.step("search[lamp]").observation).toMatch(/^'Back to Search' \[SEP\] 'Page 1 /);
    expect(env.clone().step("click[back to search]").observation).toBe("'Search'");
  });
});

describe("any actions at all", () => {
  const world: ShopWorld = {
    shop,
    observations: "page",
    reward: "success",
    goalOf: () => goal,
    suggestions: () => ["lamp"],
  };
  const start = (): Env => {
    const env = createShopEnv(world);
    env.reset({ id: "test/0", split: "test", type: "garden" });
    return env;
  };

  it("are answered, and what is listed can be done", () => {
    const anything = fc.oneof(
      fc.string({ unit: "binary" }),
      fc.string().map((text) => `search[${text}]`),
      fc.string().map((text) => `click[${text}]`),
      fc.nat(),
    );
    fc.assert(
      fc.property(fc.array(anything, { maxLength: 12 }), (actions) => {
        const env = start();
        for (const action of actions) {
          const listed = env.admissibleActions!();
          const picked = typeof action === "number" ? listed[action % listed.length]! : action;
          const irreversible = env.irreversible!(picked);
          const { observation, done, info } = env.step(picked);
          expect(observation.length).toBeGreaterThan(10);
          expect(info.valid || !listed.includes(picked)).toBe(true);
          expect(done).toBe(irreversible);
          if (done) break;
        }
      }),
    );
  });

  it("include queries of 100 kB and of every script", () => {
    const env = start();
    for (const query of [
      "lamp ".repeat(20_000),
      "x".repeat(100_000),
      "[".repeat(100_000),
      "灯 ★ लैंप \ud800",
    ]) {
      const { info, observation } = env.step(`search[${query}]`);
      expect(info.valid).toBe(!query.startsWith("["));
      expect(observation).toMatch(/Instruction:/);
    }
  });

  it("are rejected before a task is given", () => {
    expect(() => createShopEnv(world).step("search[lamp]")).toThrow(/call reset/);
  });
});

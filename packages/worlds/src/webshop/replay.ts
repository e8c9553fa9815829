/**
 * Replays recorded episodes and rankings of the original environment and compares them.
 *
 * What is compared: prices and goals drawn from the recorded seeds; every page's text, clickables
 * and end; every purchase's score without the kind of product, and the whole score if the recording
 * says that it does not depend on the noun tagger; every ranking with its scores.
 */

import { EnvError, type Mismatch, type ReplayResult } from "@pawl/core/envs/env.js";
import { createAnalyser } from "../retrieval/analyser.js";
import { createSearcher } from "../retrieval/bm25.js";
import { createIndexBuilder } from "../retrieval/bm25-build.js";
import { type Catalogue, MOST_RESULTS, searchText } from "./catalogue.js";
import { drawPrices, type Goal, type Goals, makeGoals } from "./goals.js";
import { openOfficialCatalogue, type WishKind } from "./official-catalogue.js";
import { clickables, type Place, pageText } from "./pages.js";
import { createPythonRandom } from "./python-random.js";
import { findColours } from "./score.js";
import { move, type Shop } from "./shop.js";

interface RecordedGoal {
  readonly asin: string;
  readonly goal_options: Readonly<Record<string, string>> | readonly string[];
  readonly attributes: readonly string[];
  readonly price_upper: number;
  readonly instruction_text: string;
}

interface RecordedWorld {
  readonly type: "world";
  readonly price_seed: number;
  readonly products: readonly string[];
  readonly modes: Readonly<
    Record<
      WishKind,
      {
        readonly product_prices: Readonly<Record<string, number>>;
        readonly goals: readonly RecordedGoal[];
      }
    >
  >;
}

interface RecordedPage {
  readonly obs: string;
  readonly clickables: readonly string[];
  readonly has_search_bar: boolean;
  readonly page: string;
}

interface RecordedEpisode {
  readonly type: "episode";
  readonly mode: WishKind;
  readonly session: number;
  readonly reset: RecordedPage;
  readonly steps: readonly (RecordedPage & {
    readonly action: string;
    readonly reward: number;
    readonly done: boolean;
  })[];
  readonly purchases: readonly {
    readonly reward_without_type: number;
    readonly denominator: number;
    readonly num_attr_matches: number;
    readonly num_option_matches: number;
    readonly r_price: boolean;
    readonly r_type_possible: readonly number[];
    readonly reward_possible: readonly number[];
  }[];
}

interface RecordedQuery {
  readonly n: number;
  readonly query: string;
  readonly tokens: readonly string[];
  readonly total_matching: number;
  readonly asins: readonly string[];
  readonly scores: readonly number[];
}

/** Replays recorded episodes or queries on the catalogue in a folder. */
export function replayWebshop(records: readonly unknown[], dataFolder: string): ReplayResult {
  const comparison = createComparison();
  const worlds = new Map<WishKind, { readonly shop: Shop; readonly goals: Goals }>();
  let world: RecordedWorld | undefined;
  let ranking: ((record: RecordedQuery) => void) | undefined;
  let traces = 0;
  for (const [at, record] of records.entries()) {
    if (isWorld(record)) {
      world = record;
    } else if (isEpisode(record)) {
      const { mode } = record;
      let known = worlds.get(mode);
      if (known === undefined) {
        if (world === undefined)
          throw new EnvError(
            `record ${at + 1} is an episode, but the record of the world it was played in ("type": "world") does not precede it.`,
          );
        known = openWorld(world, mode, dataFolder, comparison);
        worlds.set(mode, known);
      }
      replayEpisode(known.shop, known.goals, record, `episode ${traces}`, comparison);
      traces++;
    } else if (isQuery(record)) {
      ranking ??= createRanking(dataFolder, comparison);
      ranking(record);
      traces++;
    } else {
      throw new EnvError(
        `record ${at + 1} is not a recorded world, episode or query of WebShop: it starts with ${JSON.stringify(record)?.slice(0, 80)}.`,
      );
    }
  }
  return { traces, states: comparison.states, mismatches: comparison.mismatches };
}

interface Comparison {
  readonly states: number;
  readonly mismatches: readonly Mismatch[];
  /** Compares one state: everything in it must be equal. */
  compare(where: string, expected: Fields, found: Fields): void;
}

type Fields = Readonly<Record<string, unknown>>;

function createComparison(): Comparison {
  const mismatches: Mismatch[] = [];
  let states = 0;
  return {
    get states() {
      return states;
    },
    mismatches,
    compare(where, expected, found) {
      states++;
      for (const [name, value] of Object.entries(expected)) {
        if (JSON.stringify(value) === JSON.stringify(found[name])) continue;
        mismatches.push({ where: `${where}, ${name}`, expected: value, found: found[name] });
      }
    },
  };
}

function isFields(record: unknown): record is Fields {
  return typeof record === "object" && record !== null;
}

function isWorld(record: unknown): record is RecordedWorld {
  return isFields(record) && record.type === "world" && isFields(record.modes);
}

function isEpisode(record: unknown): record is RecordedEpisode {
  return isFields(record) && record.type === "episode" && Array.isArray(record.steps);
}

function isQuery(record: unknown): record is RecordedQuery {
  return isFields(record) && typeof record.query === "string" && Array.isArray(record.asins);
}

/** Draws prices and goals from the recorded seed, and compares them with the recorded ones. */
function openWorld(
  world: RecordedWorld,
  mode: WishKind,
  data: string,
  { compare }: Comparison,
): { readonly shop: Shop; readonly goals: Goals } {
  const catalogue = openOfficialCatalogue({ data, wishes: mode });
  const random = createPythonRandom(world.price_seed);
  const prices = drawPrices(catalogue, random);
  const goals = makeGoals(catalogue, prices, random);
  const { product_prices, goals: recorded } = world.modes[mode];
  compare(`${mode} world`, { products: world.products }, { products: asinsOf(catalogue) });
  for (let number = 0; number < catalogue.count; number++) {
    const { asin } = catalogue.product(number);
    compare(
      `${mode} world, price of ${asin}`,
      { price: product_prices[asin] },
      { price: prices[number] },
    );
  }
  compare(`${mode} world`, { goals: recorded.length }, { goals: goals.count });
  for (let number = 0; number < Math.min(goals.count, recorded.length); number++) {
    const { asin, instruction_text, attributes, goal_options, price_upper } = recorded[number]!;
    const options = Array.isArray(goal_options) ? goal_options : Object.entries(goal_options);
    compare(
      `${mode} goal ${number}`,
      { asin, text: instruction_text, attributes, options, priceLimit: price_upper },
      goals.goal(number) as unknown as Fields,
    );
  }
  return { shop: { catalogue, prices, colours: findColours(data) }, goals };
}

function asinsOf(catalogue: Catalogue): readonly string[] {
  return Array.from({ length: catalogue.count }, (_, number) => catalogue.product(number).asin);
}

function replayEpisode(
  shop: Shop,
  goals: Goals,
  episode: RecordedEpisode,
  where: string,
  { compare }: Comparison,
): void {
  const goal = goals.goal(episode.session);
  let place: Place = { page: "index" };
  compare(`${where}, reset`, pageOf(episode.reset), seen(shop, goal, place));
  let purchases = 0;
  for (const [at, step] of episode.steps.entries()) {
    const here = `${where}, step ${at + 1} (${step.action})`;
    const moved = move(shop, goal, place, step.action);
    place = moved.place;
    const bought = moved.score === undefined ? undefined : episode.purchases[purchases++];
    if (moved.score !== undefined && bought !== undefined) {
      compare(
        here,
        {
          withoutType: bought.reward_without_type,
          attributeHits: bought.num_attr_matches,
          optionHits: bought.num_option_matches,
          priceHit: bought.r_price,
          wanted: bought.denominator,
        },
        moved.score as unknown as Fields,
      );
      const decided = bought.r_type_possible.length === 1;
      // If the score depends on the tagger, compare the page with the recorded score filled in.
      if (!decided && place.page === "done") place = { ...place, score: step.reward };
    }
    const reward = place.page === "done" && moved.score !== undefined ? place.score : 0;
    compare(
      here,
      { ...pageOf(step), done: step.done, reward: step.reward },
      { ...seen(shop, goal, place), done: moved.score !== undefined, reward },
    );
  }
  compare(where, { purchases: episode.purchases.length }, { purchases });
}

function pageOf({ obs, clickables, has_search_bar, page }: RecordedPage): Fields {
  return { page, text: obs, clickables, searchBar: has_search_bar };
}

function seen({ catalogue }: Shop, goal: Goal, place: Place): Fields {
  return {
    page: place.page,
    text: pageText(catalogue, goal.text, place),
    clickables: clickables(catalogue, place),
    searchBar: place.page === "index",
  };
}

function createRanking(data: string, { compare }: Comparison): (record: RecordedQuery) => void {
  const catalogue = openOfficialCatalogue({ data, wishes: "synthetic" });
  const builder = createIndexBuilder();
  for (let number = 0; number < catalogue.count; number++) {
    const product = catalogue.product(number);
    builder.add(product.asin, searchText(product));
  }
  const searcher = createSearcher(builder.finish());
  const analyse = createAnalyser();
  return ({ n, query, tokens, total_matching, asins, scores }) => {
    const { hits, matching } = searcher.search(query, MOST_RESULTS);
    compare(
      `query ${n} (${query.slice(0, 60)})`,
      { tokens, matching: total_matching, asins, scores: scores.map(Math.fround) },
      {
        tokens: analyse(query),
        matching,
        asins: hits.map((hit) => hit.id),
        scores: hits.map((hit) => hit.score),
      },
    );
  };
}

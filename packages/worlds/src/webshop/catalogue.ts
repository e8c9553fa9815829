/** The products of a shop: found by search, department or number, each read when it is needed. */

import { EnvError } from "@pawl/core/envs/env.js";
import { floatText, strip } from "@pawl/core/envs/python-text.js";
import type { Searcher } from "../retrieval/bm25.js";

/** One thing to choose about a product, such as its size. */
interface OptionGroup {
  readonly name: string;
  readonly values: readonly string[];
}

/** A product. */
export interface Product {
  readonly asin: string;
  readonly title: string;
  readonly description: string;
  readonly bullets: readonly string[];
  /** One price, or the two ends of a range. */
  readonly prices: readonly [number] | readonly [number, number];
  readonly options: readonly OptionGroup[];
  /** One of the shop's departments. */
  readonly category: string;
  /** A query that finds products of this kind. */
  readonly query: string;
  /** The path to its kind, parts separated by `›`. */
  readonly productCategory: string;
}

const NO_PRICE = 100;
/** The original rejects ids that are longer than an asin. */
const LONGEST_ASIN = 10;

type Fields = Readonly<Record<string, unknown>>;

/** The product of a catalogue record; undefined if the original leaves the record out too. */
export function parseProduct(record: unknown, where: string): Product | undefined {
  if (!isFields(record))
    throw new EnvError(`${where}: a product is a JSON object, got ${typeof record}.`);
  const { asin } = record;
  if (typeof asin !== "string" || asin === "")
    throw new EnvError(`${where}: a product needs an "asin", got ${JSON.stringify(asin)}.`);
  if (asin === "nan" || asin.length > LONGEST_ASIN) return undefined;
  const bullets = record.small_description;
  return {
    asin,
    title: text(record.name),
    description: text(record.full_description),
    bullets: Array.isArray(bullets) ? bullets.map(text) : [text(bullets)],
    prices: parsePrices(record.pricing),
    options: parseOptions(record.customization_options),
    category: text(record.category),
    query: strip(text(record.query).toLowerCase()),
    productCategory: text(record.product_category),
  };
}

/** The price as pages show it. */
export function priceTag({ prices }: Product): string {
  return prices.map((price) => `$${floatText(price)}`).join(" to ");
}

/** The text that the product is indexed by. */
export function searchText({ title, description, bullets, options }: Product): string {
  const choices = options.map(({ name, values }) => `${name}: ${values.join(", ")}`).join(", and ");
  return [title, description, bullets[0] ?? "", choices].join(" ").toLowerCase();
}

function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** Prices come as text such as `$19.99 - $27.99`, or as numbers if the catalogue was prepared. */
function parsePrices(pricing: unknown): Product["prices"] {
  const parts = Array.isArray(pricing) ? pricing : text(pricing).split("$").slice(1).map(digits);
  const [low, high] = parts.filter((part) => typeof part === "number" && Number.isFinite(part));
  if (low === undefined) return [NO_PRICE];
  return high === undefined ? [low] : [low, high];
}

function digits(price: string): number {
  return Number.parseFloat(price.replace(/[^\d.]/g, ""));
}

function parseOptions(groups: unknown): readonly OptionGroup[] {
  if (!isFields(groups)) return [];
  const options = new Map<string, readonly string[]>();
  for (const [name, choices] of Object.entries(groups)) {
    if (!Array.isArray(choices)) continue;
    const values = choices.map((choice) =>
      strip(isFields(choice) ? text(choice.value) : "")
        .replaceAll("/", " | ")
        .toLowerCase(),
    );
    options.set(name.toLowerCase(), values);
  }
  return Array.from(options, ([name, values]) => ({ name, values }));
}

/** Maximum number of search results, as in the original. */
export const MOST_RESULTS = 50;

/** Cached products: pages of one episode show the same ones repeatedly. */
const KEPT_PRODUCTS = 4096;
/** Cached rankings: the episodes of a group often use the same queries. */
const KEPT_RANKINGS = 256;

/** A wish for a product, written by a person or generated. */
export interface Wish {
  readonly text: string;
  readonly attributes: readonly string[];
  /** The wanted option values; absent if every combination of options makes its own task. */
  readonly options?: readonly string[];
}

/** The products of a shop. */
export interface Catalogue {
  readonly count: number;
  /** All prices in order; the upper end is NaN for a single price. */
  readonly prices: { readonly low: Float64Array; readonly high: Float64Array };
  product(number: number): Product;
  /** The department of a product. */
  category(number: number): string;
  /** The attributes of the product, which wishes ask for. */
  attributes(number: number): readonly string[];
  /** Numbers of the best-matching products, at most 50. */
  search(text: string): readonly number[];
  /** Numbers of the products of a department, or with a query, in order. */
  inCategory(category: string): readonly number[];
  withQuery(query: string): readonly number[];
  /** The wishes for one product. */
  wishes(number: number): readonly Wish[];
}

/** One word per product, such as its department, stored compactly. */
export interface WordColumn {
  readonly words: readonly string[];
  readonly codes: Uint32Array;
}

/** What a catalogue is made from. */
export interface CatalogueParts {
  readonly searcher: Searcher;
  readonly prices: Catalogue["prices"];
  readonly categories: WordColumn;
  readonly queries: WordColumn;
  product(number: number): Product;
  attributes(number: number): readonly string[];
  wishes(number: number): readonly Wish[];
}

/** A catalogue with caches for recent requests. */
export function createCatalogue(parts: CatalogueParts): Catalogue {
  const { searcher, prices, categories } = parts;
  return {
    count: searcher.index.ids.length,
    prices,
    product: remember(KEPT_PRODUCTS, parts.product),
    category: (number) => categories.words[categories.codes[number]!]!,
    attributes: parts.attributes,
    wishes: parts.wishes,
    search: remember(KEPT_RANKINGS, (text: string) =>
      searcher.search(text, MOST_RESULTS).hits.map((hit) => hit.document),
    ),
    inCategory: (category) => numbersOf(categories, category),
    withQuery: (query) => numbersOf(parts.queries, query),
  };
}

/** Collects one word per product. */
export function createWordColumn(): { add(word: string): void; finish(): WordColumn } {
  const words = new Map<string, number>();
  const codes: number[] = [];
  return {
    add(word) {
      let code = words.get(word);
      if (code === undefined) {
        code = words.size;
        words.set(word, code);
      }
      codes.push(code);
    },
    finish: () => ({ words: [...words.keys()], codes: Uint32Array.from(codes) }),
  };
}

function numbersOf({ words, codes }: WordColumn, word: string): readonly number[] {
  const code = words.indexOf(word);
  const numbers: number[] = [];
  if (code < 0) return numbers;
  for (let number = 0; number < codes.length; number++) {
    if (codes[number] === code) numbers.push(number);
  }
  return numbers;
}

/** The function with its latest `limit` results cached. */
function remember<Key, Value>(limit: number, find: (key: Key) => Value): (key: Key) => Value {
  const known = new Map<Key, Value>();
  return (key) => {
    const kept = known.get(key);
    if (kept !== undefined) return kept;
    const found = find(key);
    if (known.size >= limit) known.delete(known.keys().next().value as Key);
    known.set(key, found);
    return found;
  };
}

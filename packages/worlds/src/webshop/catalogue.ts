/** The products of a shop: found by search, department or number, each read when it is needed. */
import type { Searcher } from "../retrieval/bm25.js";
import type { Product } from "./product.js";

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

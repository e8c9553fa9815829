/**
 * Goals: what somebody wants to buy, in the original's order.
 *
 * Prices of products sold at a range and the price limits are drawn from one stream of random
 * numbers in the order of the products; then the generator is reseeded and the goals are shuffled.
 * Goals are built on demand: the full catalogue has millions.
 */
import type { Catalogue, Product } from "./catalogue.js";
import { createPythonRandom, type PythonRandom } from "./python-random.js";

const SHUFFLE_SEED = 233;
const NO_LIMIT = 1_000_000;
/** Limits are round: 10, 20, … 990. */
const LIMITS: readonly number[] = Array.from({ length: 99 }, (_, at) => 10 * (at + 1));
const NEAREST_LIMITS = 4;

/** A wanted option: its value alone, or with the name of the option. */
export type WantedOption = string | readonly [name: string, value: string];

/** What somebody wants to buy. */
export interface Goal {
  /** Number of the product it was written for. */
  readonly product: number;
  readonly asin: string;
  /** The department of that product. */
  readonly category: string;
  readonly text: string;
  readonly attributes: readonly string[];
  readonly options: readonly WantedOption[];
  readonly priceLimit: number;
}

/** All goals, by their number in the order of play. */
export interface Goals {
  readonly count: number;
  goal(number: number): Goal;
  /** The department of a goal's product, without building the goal. */
  category(number: number): string;
}

/** The price of every product: drawn once if it is a range. */
export function drawPrices({ prices }: Catalogue, random: PythonRandom): Float64Array {
  return prices.low.map((low, number) => {
    const high = prices.high[number]!;
    return Number.isNaN(high) ? low : random.uniform(low, high);
  });
}

/** The goals of a catalogue; `random` must already have drawn the prices. */
export function makeGoals(catalogue: Catalogue, prices: Float64Array, random: PythonRandom): Goals {
  const sources: Source[] = [];
  const firsts: number[] = [];
  let count = 0;
  for (let number = 0; number < catalogue.count; number++) {
    for (const [at, wish] of catalogue.wishes(number).entries()) {
      const priceLimit = drawLimit(prices[number]!, random);
      firsts.push(count);
      sources.push({ product: number, wish: at, priceLimit });
      count += wish.options === undefined ? combinations(catalogue.product(number)) : 1;
    }
  }
  const order = new Uint32Array(count).map((_, at) => at);
  createPythonRandom(SHUFFLE_SEED).shuffle(order);
  const sourceOf = (number: number): { readonly at: number; readonly combination: number } => {
    const unshuffled = order[number];
    if (unshuffled === undefined)
      throw new RangeError(`there are ${count} goals, numbered from 0; there is no goal ${number}`);
    const at = lastAtMost(firsts, unshuffled);
    return { at, combination: unshuffled - firsts[at]! };
  };
  return {
    count,
    goal(number) {
      const { at, combination } = sourceOf(number);
      return putTogether(catalogue, sources[at]!, combination);
    },
    category: (number) => catalogue.category(sources[sourceOf(number).at]!.product),
  };
}

interface Source {
  readonly product: number;
  /** Which of the product's wishes. */
  readonly wish: number;
  readonly priceLimit: number;
}

function drawLimit(price: number, random: PythonRandom): number {
  const above = LIMITS.filter((limit) => limit > price).slice(0, NEAREST_LIMITS);
  return above.length < 2 ? NO_LIMIT : Math.max(...random.sample(above, 2));
}

function combinations({ options }: Product): number {
  return options.reduce((count, group) => count * group.values.length, 1);
}

/** The goal of one combination: option names sorted, the last one's values changing fastest. */
function putTogether(catalogue: Catalogue, source: Source, combination: number): Goal {
  const product = catalogue.product(source.product);
  const wish = catalogue.wishes(source.product)[source.wish]!;
  const options = wish.options ?? chooseOptions(product, combination);
  return {
    product: source.product,
    asin: product.asin,
    category: product.category,
    text: wish.text + optionText(options) + limitText(source.priceLimit),
    attributes: wish.attributes,
    options,
    priceLimit: source.priceLimit,
  };
}

function chooseOptions(
  product: Product,
  combination: number,
): readonly (readonly [string, string])[] {
  const groups = [...product.options].sort((a, b) => (a.name < b.name ? -1 : 1));
  let left = combination;
  return groups
    .reverse()
    .map(({ name, values }) => {
      const value = values[left % values.length]!;
      left = Math.floor(left / values.length);
      return [name, value] as const;
    })
    .reverse();
}

function optionText(options: readonly WantedOption[]): string {
  const named = options.filter((option) => typeof option !== "string");
  if (named.length === 0) return "";
  return ` with ${named.map(([name, value]) => `${name}: ${value}`).join(", and ")}`;
}

function limitText(limit: number): string {
  return limit < NO_LIMIT ? `, and price lower than ${limit.toFixed(2)} dollars` : "";
}

/** Index of the last of the ascending numbers that is at most `value`. */
function lastAtMost(ascending: readonly number[], value: number): number {
  let low = 0;
  let high = ascending.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (ascending[middle]! <= value) low = middle;
    else high = middle - 1;
  }
  return low;
}

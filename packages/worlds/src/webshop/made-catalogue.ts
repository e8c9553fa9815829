/**
 * A catalogue of any size made up from a seed, so that the shop opens on a machine without the
 * official files. A product is generated on demand, from the seed and its number alone.
 */
import { createRandom, mixSeed, type Random } from "@pawl/core/random.js";
import { createSearcher } from "../retrieval/bm25.js";
import { createIndexBuilder } from "../retrieval/bm25-build.js";
import { type Catalogue, createCatalogue, createWordColumn, type Wish } from "./catalogue.js";
import { type ProductKind, productKinds, shopColours, syllables } from "./made-words.js";
import { type Product, searchText } from "./product.js";

/** A made-up product and its attributes. */
export interface MadeProduct {
  readonly product: Product;
  readonly kind: ProductKind;
  readonly traits: readonly string[];
}

/**
 * How products are described: with names of makers and series, as many as the original's; or with
 * few words, which wishes use too. In plain words a page of results shows all that decides whether a
 * product fits: its title has every attribute, and products of a kind come in the same colours, the
 * only choice.
 */
export type Wording = "rich" | "plain";

const PLAIN_COLOURS = 6;

/** Product `number` of the catalogue with this seed. */
export function makeProduct(seed: number, number: number, wording: Wording = "rich"): MadeProduct {
  return wording === "rich" ? makeRich(seed, number) : makePlain(seed, number);
}

function makePlain(seed: number, number: number): MadeProduct {
  const random = createRandom(mixSeed(seed, "plain product", number));
  const kind = random.pick(productKinds);
  const traits = some(random, kind.traits, 1 + random.int(3));
  const product: Product = {
    asin: `M${number}`,
    title: capitalised(`${traits.join(", ")} ${kind.name}`),
    description: `A ${kind.name} made of ${random.pick(kind.materials)}.`,
    bullets: [`For ${some(random, kind.uses, 2).join(" and ")}`],
    prices: [makePrice(random, kind)],
    options: [{ name: "color", values: coloursOf(kind) }],
    category: kind.department,
    query: kind.name,
    productCategory: pathOf(kind),
  };
  return { product, kind, traits };
}

function makeRich(seed: number, number: number): MadeProduct {
  const random = createRandom(mixSeed(seed, "product", number));
  const kind = random.pick(productKinds);
  const traits = some(random, kind.traits, 2 + random.int(3));
  const maker = properName(random, 2);
  const series = `${properName(random, 2)} ${100 + random.int(900)}`;
  const material = random.pick(kind.materials);
  const uses = some(random, kind.uses, 2);
  const title = `${maker} ${capitalised(traits.slice(0, 3).join(", "))} ${capitalised(kind.name)} ${series}`;
  const product: Product = {
    // Unique by construction, and ten characters long like the original's.
    asin: `M${number.toString(36).toUpperCase().padStart(9, "0")}`,
    title,
    description: describe(random, kind, { maker, series, material, traits, uses }),
    bullets: [
      `${capitalised(traits.join(", "))}: what we made the ${series} for`,
      `Made of ${material} by ${maker}`,
      `For ${uses.join(" and ")}`,
    ],
    prices: makePrices(random, kind),
    options: [
      { name: "color", values: some(random, shopColours, 2 + random.int(3)) },
      { name: kind.choice.name, values: inOrder(random, kind.choice.values) },
    ],
    category: kind.department,
    query: kind.name,
    productCategory: pathOf(kind),
  };
  return { product, kind, traits };
}

function pathOf({ department, shelf }: ProductKind): string {
  return `Shop › ${capitalised(department)} › ${shelf}`;
}

/** The colours that all products of a kind come in. */
function coloursOf(kind: ProductKind): readonly string[] {
  return some(createRandom(mixSeed("colours", kind.name)), shopColours, PLAIN_COLOURS);
}

/** The made-up catalogue of this seed and size. */
export function openMadeCatalogue(
  count: number,
  seed: number,
  wording: Wording = "rich",
): Catalogue {
  const make = (number: number): MadeProduct => makeProduct(seed, number, wording);
  const builder = createIndexBuilder();
  const categories = createWordColumn();
  const queries = createWordColumn();
  const low = new Float64Array(count);
  const high = new Float64Array(count).fill(Number.NaN);
  for (let number = 0; number < count; number++) {
    const { product } = make(number);
    builder.add(product.asin, searchText(product));
    categories.add(product.category);
    queries.add(product.query);
    low[number] = product.prices[0];
    if (product.prices.length === 2) high[number] = product.prices[1];
  }
  return createCatalogue({
    searcher: createSearcher(builder.finish()),
    prices: { low, high },
    categories: categories.finish(),
    queries: queries.finish(),
    product: (number) => make(number).product,
    attributes: (number) => make(number).traits,
    wishes: (number) => [makeWish(seed, number, make(number))],
  });
}

function makeWish(seed: number, number: number, { kind, traits }: MadeProduct): Wish {
  const random = createRandom(mixSeed(seed, "wish", number));
  const attributes = traits.slice(0, 1 + random.int(Math.min(3, traits.length)));
  const wanted = listed(attributes);
  const article = /s$/.test(kind.name) ? "some" : "a";
  const text = random.pick([
    `I want to buy ${article} ${kind.name}, ${wanted}`,
    `Please order ${article} ${kind.name} for me, preferably ${wanted}`,
    `We need ${article} ${wanted} ${kind.name}`,
    `My old ${kind.name} broke, get me ${article === "a" ? "one that is" : "new ones,"} ${wanted}`,
  ]);
  return { text, attributes };
}

interface Story {
  readonly maker: string;
  readonly series: string;
  readonly material: string;
  readonly traits: readonly string[];
  readonly uses: readonly string[];
}

function describe(random: Random, kind: ProductKind, story: Story): string {
  const { maker, series, material, traits, uses } = story;
  const sentences = [
    `The ${series} by ${maker} is ${listed(traits)}.`,
    `Its ${material} comes from a small workshop in ${properName(random, 3)} and is checked by hand.`,
    `Customers like this ${kind.name} for ${uses.join(" and for ")}.`,
    `If it breaks within ${1 + random.int(5)} years, ${maker} repairs or replaces it.`,
    `Matching parts of the ${properName(random, 2)} range can be ordered later.`,
    `Care: wipe it with a damp cloth and let it dry, away from ${random.pick(["direct sun", "radiators", "open fire"])}.`,
  ];
  return some(random, sentences, 4 + random.int(3)).join(" ");
}

function makePrice(random: Random, { prices: [low, high] }: ProductKind): number {
  // Cheap products are the most common.
  const share = random.next() ** 2;
  return Math.round(100 * (low + (high - low) * share)) / 100;
}

function makePrices(random: Random, kind: ProductKind): Product["prices"] {
  const price = makePrice(random, kind);
  return random.int(10) === 0 ? [price, Math.round(100 * (price * 1.2)) / 100] : [price];
}

function some<T>(random: Random, items: readonly T[], count: number): readonly T[] {
  return random.shuffle([...items]).slice(0, count);
}

/** All values or all but one, in their usual order. */
function inOrder<T>(random: Random, values: readonly T[]): readonly T[] {
  const missing = random.int(values.length + 1);
  return values.filter((_, at) => at !== missing || values.length <= 2);
}

function properName(random: Random, parts: number): string {
  return capitalised(Array.from({ length: parts }, () => random.pick(syllables)).join(""));
}

function capitalised(text: string): string {
  return text.replace(/(^|[ ,])\p{Ll}/gu, (start) => start.toUpperCase());
}

function listed(words: readonly string[]): string {
  return words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} and ${words.at(-1)}`;
}

/**
 * A catalogue of any size made up from a seed, so that the shop opens on a machine without the
 * official files. A product is generated on demand, from the seed and its number alone.
 */
import { createRandom, mixSeed, type Random } from "@pawl/core/random.js";
import { createSearcher } from "../retrieval/bm25.js";
import { createIndexBuilder } from "../retrieval/bm25-build.js";
import {
  type Catalogue,
  createCatalogue,
  createWordColumn,
  type Product,
  searchText,
  type Wish,
} from "./catalogue.js";

/**
 * The words of the made-up catalogue: kinds of products, their attributes, and how they are sold.
 *
 * A line of the table is one kind: its name; the path to it in the shop, below the department; what
 * it is used for; what can be chosen besides the colour; the range of its prices. Option values are
 * so different that the score never confuses them.
 */

/** A kind of product. */
interface ProductKind {
  readonly name: string;
  readonly department: string;
  readonly shelf: string;
  /** To be read after "for". */
  readonly uses: readonly string[];
  readonly materials: readonly string[];
  /** Adjectives that only some of these products have. */
  readonly traits: readonly string[];
  readonly choice: { readonly name: string; readonly values: readonly string[] };
  readonly prices: readonly [number, number];
}

interface Department {
  readonly name: string;
  readonly traits: string;
  readonly materials: string;
  readonly kinds: string;
}

const departments: readonly Department[] = [
  {
    name: "kitchen",
    traits:
      "dishwasher safe, heat resistant, easy to clean, space saving, rustproof, stackable, shatterproof, lead free, hand finished, oven safe",
    materials: "glass, bamboo, cast iron, ceramic, silicone, enamel",
    kinds: `
      frying pan | Cookware › Pans | quick suppers, pancakes, induction hobs | diameter: 20 cm, 24 cm, 28 cm, 32 cm | 12 to 80
      tea kettle | Drinks › Kettles | gas stoves, herbal tea, camping trips | capacity: 0.8 l, 1.2 l, 1.7 l | 15 to 90
      storage jar | Storage › Jars | flour, coffee beans, homemade jam | pack: just one, set of two, set of four, set of six | 5 to 40
      chopping board | Tools › Boards | bread, vegetables, small flats | size: small, medium, large | 8 to 55
      water bottle | Drinks › Bottles | school days, long rides, the gym | capacity: 350 ml, 500 ml, 750 ml, 1 l | 7 to 45
      mixing bowl | Baking › Bowls | cake batter, salads, bread dough | capacity: 1 l, 2 l, 4 l | 6 to 48
    `,
  },
  {
    name: "clothing",
    traits:
      "machine washable, quick drying, breathable, windproof, wrinkle free, loose fitting, long wearing, double stitched, moisture wicking, tumble dry safe",
    materials: "cotton, merino wool, linen, fleece, corduroy, jersey",
    kinds: `
      rain jacket | Outerwear › Jackets | autumn walks, cycling to work, sailing | size: xs, s, m, l, xl, xxl | 35 to 190
      knit sweater | Tops › Sweaters | cold offices, winter evenings, layering | size: xs, s, m, l, xl, xxl | 22 to 130
      hiking trousers | Trousers › Outdoor | mountain paths, light climbing, travel | size: xs, s, m, l, xl, xxl | 28 to 140
      running shirt | Tops › Sport | morning runs, hot days, races | size: xs, s, m, l, xl, xxl | 12 to 70
      bath robe | Nightwear › Robes | saunas, slow Sundays, hotel rooms | size: xs, s, m, l, xl, xxl | 20 to 110
      wool socks | Accessories › Socks | boots, cold floors, skiing | pack: just one, set of two, set of four, set of six | 6 to 38
    `,
  },
  {
    name: "home",
    traits:
      "easy to assemble, scratch resistant, foldable, wall mounted, child safe, adjustable, noise reducing, anti slip, stain resistant, dust free",
    materials: "oak, pine, steel tube, rattan, felt, birch plywood",
    kinds: `
      bookshelf | Furniture › Shelves | paperbacks, hallways, a study | height: 80 cm, 120 cm, 160 cm, 200 cm | 30 to 260
      desk lamp | Lighting › Lamps | reading, drawing, late work | plug: european, british, american | 14 to 95
      floor rug | Textiles › Rugs | living rooms, nurseries, cold tiles | size: 60 x 90 cm, 120 x 180 cm, 160 x 230 cm | 18 to 240
      window curtain | Textiles › Curtains | bedrooms, tall windows, drafty houses | length: 140 cm, 180 cm, 240 cm | 12 to 120
      side table | Furniture › Tables | sofas, plants, morning coffee | shape: round, square, oval | 24 to 180
      coat rack | Furniture › Racks | hallways, wet coats, guests | hooks: four, six, eight | 10 to 85
    `,
  },
  {
    name: "outdoors",
    traits:
      "waterproof, lightweight, tear resistant, packable, reflective, insulated, freestanding, ultraviolet resistant, self inflating, frost resistant",
    materials: "ripstop nylon, canvas, aluminium, recycled polyester, waxed fabric",
    kinds: `
      hiking backpack | Bags › Backpacks | weekend tours, hut trips, city breaks | volume: 20 l, 30 l, 45 l, 60 l | 30 to 220
      dome tent | Camping › Tents | festivals, bike tours, windy shores | sleeps: one, two, four | 55 to 420
      sleeping bag | Camping › Sleeping | summer nights, cold huts, sleepovers | length: 170 cm, 185 cm, 200 cm | 28 to 260
      camping chair | Camping › Furniture | fishing, campfires, football games | load: 90 kg, 120 kg, 150 kg | 16 to 110
      picnic blanket | Leisure › Blankets | parks, beaches, open air concerts | size: 100 x 150 cm, 140 x 200 cm, 210 x 220 cm | 12 to 65
      trekking poles | Hiking › Poles | steep descents, snow shoes, river crossings | length: 110 cm, 120 cm, 130 cm | 18 to 140
    `,
  },
  {
    name: "electronics",
    traits:
      "wireless, fast charging, splash proof, voice controlled, shockproof, rechargeable, glare free, energy efficient, dimmable, plug and play",
    materials: "brushed metal, matte plastic, woven cable, tempered glass",
    kinds: `
      bluetooth speaker | Audio › Speakers | kitchens, garden parties, travel | power: 5 w, 10 w, 20 w | 18 to 210
      phone charger | Power › Chargers | bedside tables, cars, long flights | plug: european, british, american | 9 to 60
      computer keyboard | Computers › Keyboards | typing, gaming, small desks | layout: german, british, french, spanish | 20 to 170
      photo printer | Printing › Printers | family albums, postcards, workshops | paper: a4, a5, a6 | 60 to 380
      headphones | Audio › Headphones | trains, open offices, studio work | fit: over ear, on ear, in ear | 15 to 320
      bike light | Lighting › Bike | dark roads, tunnels, winter commutes | mount: handlebar, seat post, helmet | 10 to 75
    `,
  },
  {
    name: "care",
    traits:
      "fragrance free, vegan, cruelty free, alcohol free, travel sized, hypoallergenic, fast absorbing, long lasting, refillable, paraben free",
    materials: "shea butter, aloe, argan oil, oat milk, sea salt, chamomile",
    kinds: `
      hand cream | Skin › Hands | dry hands, gardeners, cold weather | volume: 30 ml, 75 ml, 150 ml | 4 to 32
      shampoo bar | Hair › Shampoo | curly hair, fine hair, hand luggage | scent: unscented, citrus, cedar | 5 to 24
      face serum | Skin › Face | tired skin, evenings, dry air | volume: 15 ml, 30 ml, 50 ml | 9 to 75
      lip balm | Skin › Lips | ski days, windy coasts, pockets | pack: just one, set of two, set of four, set of six | 3 to 18
      bath salts | Bath › Salts | sore muscles, long evenings, gifts | weight: 200 g, 500 g, 1 kg | 6 to 36
      tooth brush | Oral › Brushes | sensitive gums, children, travel | bristles: soft, medium, firm | 2 to 26
    `,
  },
];

/** All kinds of products. */
export const productKinds: readonly ProductKind[] = departments.flatMap(readKinds);

/** The colours products come in. */
export const shopColours: readonly string[] =
  "black white grey navy teal olive maroon mustard turquoise lilac coral beige brown pink".split(
    " ",
  );

/** Syllables for the names of makers and series. */
const syllables: readonly string[] =
  "al ber cor dan el fen gar hol in jor kel lum mor nor ost pel quin ros sel tam ur vel wen yor zan bri fjo gra ska tri".split(
    " ",
  );

function readKinds({ name: department, traits, materials, kinds }: Department): ProductKind[] {
  return kinds
    .trim()
    .split("\n")
    .map((line) => {
      const [name, shelf, uses, choice, prices] = line.split("|").map((cell) => cell.trim()) as [
        string,
        string,
        string,
        string,
        string,
      ];
      const [choiceName, values] = choice.split(": ") as [string, string];
      const [low, high] = prices.split(" to ").map(Number) as [number, number];
      return {
        name,
        department,
        shelf,
        uses: uses.split(", "),
        materials: materials.split(", "),
        traits: traits.split(", "),
        choice: { name: choiceName, values: values.split(", ") },
        prices: [low, high],
      };
    });
}

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

/** A product as the shop shows it, read from a record of the catalogue. */
import { EnvError } from "../env.js";
import { floatText, strip } from "../python-text.js";

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

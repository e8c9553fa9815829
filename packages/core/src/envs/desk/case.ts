/**
 * A case at the desk, drawn from its seed: a customer, orders, products, the shop's rules, and what
 * the customer wants.
 *
 * The splits share no task: which split a case belongs to follows from the numbers of the first
 * order that is asked about and of its product. Those that end in `_unseen` ask about products (a
 * thing in a colour) that `train` never shows and, beyond the easy level, have numbers of days in
 * their rules that no shop of `train` has. All their words are words of `train`.
 */
import { createRandom, mixSeed, type Random } from "../../random.js";
import type { ToolCall } from "../../text/tool.js";

/** How a case may be closed. */
export const outcomes = ["done", "partly", "refused"] as const;
type Outcome = (typeof outcomes)[number];

/** A rule in words. */
export function ruleText(topic: RequestKind, { returnDays, lateDays, credit }: Rules): string {
  switch (topic) {
    case "cancel":
      return "Cancel: only open orders are cancelled.";
    case "return":
      return `Return: an order is refunded up to ${returnDays} days after delivery, for gold customers ${returnDays + GOLD_DAYS} days.`;
    case "broken":
      return "Broken: a broken product is replaced; if it is out of stock, the order is refunded.";
    case "address":
      return "Address: only the address of open orders is changed.";
    case "exchange":
      return "Exchange: only open orders are exchanged, for another colour of the same thing that is in stock.";
    case "late":
      return `Late: for an order sent more than ${lateDays} days ago and not delivered, the customer gets a credit of ${credit}.`;
  }
}

/** The rule that holds at the hard level for every request. */
export const POSTCODE_RULE =
  "Ask for the postcode first: who does not know the one in the customer's record gets nothing, and the case is refused.";

/** Whether the customer is who they say they are. */
export const isGenuine = ({ customer, givenPostcode }: Case): boolean =>
  customer.postcode === givenPostcode;

/** What the rules demand for a request; undefined if it must be refused. */
export function grant(
  start: Case,
  { kind, order: at, address, wish }: Request,
): ToolCall | undefined {
  const { customer, orders, products, rules } = start;
  const { number, place, days, product } = orders[at]!;
  if (!isGenuine(start)) return undefined;
  const call = (tool: string, more = {}): ToolCall => ({
    tool,
    arguments: { order: number, ...more },
  });
  const inStock = (index: number): boolean => products[index]!.stock > 0;
  switch (kind) {
    case "cancel":
      return place === "open" ? call("cancel_order") : undefined;
    case "address":
      return place === "open" ? call("change_address", { address }) : undefined;
    case "exchange":
      return place === "open" && inStock(wish!)
        ? call("exchange_product", { product: products[wish!]!.number })
        : undefined;
    case "return": {
      const last = rules.returnDays + (customer.gold ? GOLD_DAYS : 0);
      return place === "delivered" && days <= last ? call("refund_order") : undefined;
    }
    case "broken":
      return call(inStock(product) ? "replace_product" : "refund_order");
    case "late":
      return place === "sent" && days > rules.lateDays
        ? { tool: "give_credit", arguments: { customer: customer.number, amount: rules.credit } }
        : undefined;
  }
}

/** How the case must be closed. */
export function rightOutcome(start: Case): Outcome {
  const granted = start.requests.filter((request) => grant(start, request) !== undefined).length;
  if (granted === 0) return "refused";
  return granted === start.requests.length ? "done" : "partly";
}

/** What customers come for; also the topics of the shop's rules, and the types of tasks. */
export const requestKinds = ["cancel", "return", "broken", "address", "exchange", "late"] as const;
export type RequestKind = (typeof requestKinds)[number];

/** How hard the cases are. */
export const levels = ["easy", "medium", "hard"] as const;
export type Level = (typeof levels)[number];

/** The splits and their numbers of tasks. */
export const splitSizes = {
  train: 10_000,
  valid_seen: 1_000,
  valid_unseen: 1_000,
  test_unseen: 1_000,
} as const;
export type Split = keyof typeof splitSizes;

/** Where an order is at the start. */
export type Place = "open" | "sent" | "delivered";

/** An order as it was made. */
export interface Order {
  readonly number: number;
  /** Index of the product. */
  readonly product: number;
  readonly place: Place;
  /** Days since it was sent or delivered; 0 if it is open. */
  readonly days: number;
  readonly address: string;
}

/** A thing in a colour. */
export interface Product {
  readonly number: number;
  readonly thing: string;
  readonly colour: string;
  readonly stock: number;
}

/** Something that the customer wants. */
export interface Request {
  readonly kind: RequestKind;
  /** Index of the order. */
  readonly order: number;
  /** Where to send it instead. */
  readonly address?: string;
  /** Index of the product wanted instead. */
  readonly wish?: number;
}

/** The numbers in the shop's rules. */
export interface Rules {
  readonly returnDays: number;
  readonly lateDays: number;
  readonly credit: number;
}

/** A case at its start; never changed afterwards. */
export interface Case {
  readonly level: Level;
  readonly customer: {
    readonly number: number;
    readonly gold: boolean;
    readonly postcode: number;
  };
  /** What the customer says if asked for the postcode. */
  readonly givenPostcode: number;
  readonly orders: readonly Order[];
  readonly products: readonly Product[];
  readonly rules: Rules;
  readonly requests: readonly Request[];
}

/** Days that gold customers have on top to return an order. */
export const GOLD_DAYS = 10;

const things = "kettle lamp mug chair clock radio scarf bag fan vase rug bell".split(" ");
const colours = ["red", "blue", "green", "white"] as const;
const streets = "Oak Elm Hill Mill Park Lake".split(" ");

/** The kinds of requests of a level. */
export function kindsOf(level: Level): readonly RequestKind[] {
  return level === "easy" ? requestKinds.slice(0, 3) : requestKinds;
}

/** The type of a split's task by its number: types take turns. */
export function typeOf(index: number, level: Level): RequestKind {
  const kinds = kindsOf(level);
  return kinds[index % kinds.length]!;
}

/** Which split the sum of an order's and its product's number belongs to, modulo 8. */
const shares: readonly Split[] = [
  ...Array<Split>(5).fill("train"),
  "valid_seen",
  "valid_unseen",
  "test_unseen",
];

/** Draws a case; the same arguments always give the same one. */
export function drawCase(split: Split, index: number, level: Level, seed: number): Case {
  const random = createRandom(mixSeed("desk", seed, level, split, index));
  const unseen = split.endsWith("_unseen");
  const number = numbersOf(level, random);
  const count = { easy: 2, medium: 3, hard: 4 }[level];
  const rules: Rules = {
    returnDays: level === "easy" ? 30 : random.pick(unseen ? [15, 25, 35] : [10, 20, 30, 40]),
    lateDays: level === "easy" ? 7 : random.pick(unseen ? [6, 9] : [5, 7, 10]),
    credit: level === "easy" ? 5 : random.pick([5, 10, 15]),
  };
  const first = typeOf(index, level);
  const others = kindsOf(level).filter((kind) => kind !== first);
  const kinds = level === "hard" ? [first, random.pick(others)] : [first];
  const products: Product[] = [];
  const orders: Order[] = [];
  const requests: Request[] = [];
  const chosen = random.shuffle([...things.keys()]).slice(0, count);
  const places = random.shuffle([...chosen.keys()]);
  const requested = new Map(kinds.map((kind, at) => [places[at]!, kind]));
  const belongs = (sum: number): boolean => shares[sum % shares.length] === split;
  const gold = level !== "easy" && random.int(2) === 0;
  for (const [at, thing] of chosen.entries()) {
    const kind = requested.get(at);
    const product = products.length;
    // Easy products come in one colour.
    const variants = variantsOf(thing, unseen, random).slice(0, level === "easy" ? 1 : 3);
    for (const colour of variants)
      products.push({
        number: number(),
        thing: things[thing]!,
        colour: colours[colour]!,
        stock: random.int(5) < 2 ? 0 : 1 + random.int(9),
      });
    const order: Order = {
      number: kind === first ? number((one) => belongs(one + products[product]!.number)) : number(),
      product,
      ...rounded(whereabouts(kind, rules, gold, random), level),
      address: drawAddress(random),
    };
    orders.push(order);
    if (kind === undefined) continue;
    requests.push({
      kind,
      order: at,
      ...(kind === "address" && { address: otherAddress(order.address, random) }),
      ...(kind === "exchange" && { wish: product + 1 + random.int(variants.length - 1) }),
    });
  }
  requests.sort((a, b) => kinds.indexOf(a.kind) - kinds.indexOf(b.kind));
  const customer = { number: number(), gold, postcode: number() };
  const honest = level !== "hard" || random.int(4) > 0;
  const givenPostcode = honest ? customer.postcode : number();
  return { level, customer, givenPostcode, orders, products, rules, requests };
}

/**
 * Numbers of two digits, each given once, so that it is never in doubt what one stands for. The
 * easy level has fewer, which a small model learns to copy sooner.
 */
function numbersOf(level: Level, random: Random): (fits?: (number: number) => boolean) => number {
  const count = level === "easy" ? 32 : 90;
  const left = random.shuffle(Array.from({ length: count }, (_, at) => at + 10));
  return (fits = () => true) => {
    const at = left.findIndex(fits);
    if (at < 0) throw new Error("there is no number left for this split");
    return left.splice(at, 1)[0]!;
  };
}

/** The colours that a thing comes in, that of the order first. One in four is never in `train`. */
function variantsOf(thing: number, unseen: boolean, random: Random): readonly number[] {
  const held = thing % colours.length;
  const seen = random.shuffle([...colours.keys()].filter((colour) => colour !== held));
  return unseen ? [held, ...seen] : seen;
}

/** Where an order is, such that about half of the requests can be granted. */
function whereabouts(
  kind: RequestKind | undefined,
  { returnDays, lateDays }: Rules,
  gold: boolean,
  random: Random,
): Pick<Order, "place" | "days"> {
  const good = random.int(2) === 0;
  const open = { place: "open", days: 0 } as const;
  const sent = (from: number, to: number) =>
    ({ place: "sent", days: from + random.int(to - from + 1) }) as const;
  const delivered = (from: number, to: number) =>
    ({ place: "delivered", days: from + random.int(to - from + 1) }) as const;
  const any = () => [() => open, () => sent(2, 20), () => delivered(2, 60)][random.int(3)]!();
  switch (kind) {
    case "cancel":
    case "address":
    case "exchange":
      return good ? open : random.int(2) === 0 ? sent(2, 20) : delivered(2, 60);
    case "return": {
      const last = returnDays + (gold ? GOLD_DAYS : 0);
      return good ? delivered(2, last) : random.int(4) === 0 ? open : delivered(last + 1, 60);
    }
    case "broken":
      return delivered(2, 60);
    case "late":
      return good ? sent(lateDays + 1, 20) : sent(2, lateDays);
    default:
      return any();
  }
}

/** The easy level counts days in tens, 30 of which are still in time for a return. */
function rounded({ place, days }: Pick<Order, "place" | "days">, level: Level) {
  return { place, days: level === "easy" ? 10 * Math.ceil(days / 10) : days };
}

function drawAddress(random: Random): string {
  return `${1 + random.int(9)} ${random.pick(streets)} Road`;
}

function otherAddress(than: string, random: Random): string {
  let address = than;
  while (address === than) address = drawAddress(random);
  return address;
}

/**
 * Carries out calls. The tools do whatever can be done, also what the shop's rules forbid: that the
 * records are wrong then shows when the case is closed.
 */
import type { Tool, ToolCall } from "../../text/tool.js";
import { type Level, outcomes, type RequestKind, requestKinds, ruleText } from "./case.js";
import {
  type DeskState,
  describeCustomer,
  describeOrder,
  describeProduct,
  isLive,
  productName,
} from "./state.js";

/** What the customer can be asked about. */
const askable = ["order", "address", "colour", "postcode"] as const;
type Askable = (typeof askable)[number];

const number = { type: "integer", minimum: 10, maximum: 99 };
const order = { ...number, description: "number of the order" };
const product = { ...number, description: "number of the product" };
const customer = { ...number, description: "number of the customer" };

function tool(name: string, description: string, properties: Record<string, object>): Tool {
  return {
    name,
    description,
    parameters: {
      type: "object",
      properties,
      required: Object.keys(properties),
      additionalProperties: false,
    },
  };
}

const all: readonly Tool[] = [
  tool("get_order", "Show an order: product, where it is, address.", { order }),
  tool("get_product", "Show a product: stock, and its other colours.", { product }),
  tool("cancel_order", "Cancel an order. Cannot be undone.", { order }),
  tool("refund_order", "Pay back the price of an order. Cannot be undone.", { order }),
  tool("replace_product", "Send the product of an order again. Cannot be undone.", { order }),
  tool("close_case", "Close the case: was what the customer wants done, partly done or refused?", {
    outcome: { type: "string", enum: outcomes },
  }),
  tool("get_customer", "Show a customer: rank, postcode, credit, orders.", { customer }),
  tool("read_rule", "Read the shop's rule about a topic.", {
    topic: { type: "string", enum: requestKinds },
  }),
  tool("ask_customer", "Ask the customer about something.", {
    about: { type: "string", enum: askable },
  }),
  tool("change_address", "Change where an order goes.", {
    order,
    address: { type: "string", minLength: 1, maxLength: 100 },
  }),
  tool("exchange_product", "Put another colour of its product into an order.", { order, product }),
  tool("give_credit", "Give a customer a credit. Cannot be undone.", {
    customer,
    amount: { type: "integer", minimum: 1, maximum: 50 },
  }),
];

/** The easy level has the first six. */
const easy = all.slice(0, 6);

/** The tools of a level. */
export function toolsOf(level: Level): readonly Tool[] {
  return level === "easy" ? easy : all;
}

/** What cannot be undone. */
export const irreversibleTools: ReadonlySet<string> = new Set([
  "cancel_order",
  "refund_order",
  "replace_product",
  "give_credit",
  "close_case",
]);

/** What a call came to. */
export interface Answer {
  readonly valid: boolean;
  readonly text: string;
}

/** What can be looked up, each with its bit in `seen`. */
export const sights = {
  customer: 1,
  asked: (about: Askable) => 1 << (1 + askable.indexOf(about)),
  rule: (topic: RequestKind) => 1 << (5 + requestKinds.indexOf(topic)),
  order: (index: number) => 1 << (11 + index),
  product: (index: number) => 1 << (15 + index),
} as const;

const no = (text: string): Answer => ({ valid: false, text });

/** Carries out a call other than `close_case`; its arguments fit the tool's schema. */
export function act(state: DeskState, { tool, arguments: given }: ToolCall): Answer {
  const { customer, orders, products, rules } = state.case;
  const done = (text: string): Answer => ({ valid: true, text });
  const saw = (sight: number, text: string): Answer => {
    state.seen |= sight;
    return done(text);
  };
  if (tool === "read_rule") {
    const topic = given.topic as RequestKind;
    return saw(sights.rule(topic), ruleText(topic, rules));
  }
  if (tool === "ask_customer") {
    const about = given.about as Askable;
    return saw(sights.asked(about), answerTo(state, about));
  }
  if (tool === "get_customer" || tool === "give_credit") {
    if (given.customer !== customer.number) return no(`There is no customer #${given.customer}.`);
    if (tool === "get_customer") return saw(sights.customer, describeCustomer(state));
    state.credit += given.amount as number;
    return done(`Customer #${customer.number} has a credit of ${state.credit} now.`);
  }
  const wanted = products.findIndex((product) => product.number === given.product);
  if (given.product !== undefined && wanted < 0)
    return no(`There is no product #${given.product}.`);
  if (tool === "get_product") return saw(sights.product(wanted), describeProduct(state, wanted));
  const index = orders.findIndex((order) => order.number === given.order);
  if (index < 0) return no(`There is no order #${given.order}.`);
  if (tool === "get_order") return saw(sights.order(index), describeOrder(state, index));

  const order = state.orders[index]!;
  const name = `Order #${given.order}`;
  if (!isLive(order.status)) return no(`${name} is ${order.status} already.`);
  const stock = (product: number): boolean => state.stock[product]! > 0;
  const outOfStock = (product: number) =>
    no(`The ${productName(products[product]!)} is out of stock.`);
  switch (tool) {
    case "cancel_order":
      if (order.status === "delivered") return no(`${name} is delivered already.`);
      order.status = "cancelled";
      return done(`${name} is cancelled.`);
    case "refund_order":
      order.status = "refunded";
      return done(`${name} is refunded.`);
    case "replace_product":
      if (!stock(order.product)) return outOfStock(order.product);
      state.stock[order.product]!--;
      order.status = "replaced";
      return done(`${name} is replaced.`);
    case "change_address":
      if (order.status === "delivered") return no(`${name} is delivered already.`);
      order.address = given.address as string;
      return done(`${name} goes to ${order.address} now.`);
    default: {
      if (products[wanted]!.thing !== products[order.product]!.thing || wanted === order.product)
        return no(
          `Product #${given.product} is no other colour of what is in order #${given.order}.`,
        );
      if (!stock(wanted)) return outOfStock(wanted);
      state.stock[wanted]!--;
      state.stock[order.product]!++;
      order.product = wanted;
      return done(`${name} has the ${productName(products[wanted]!)} now.`);
    }
  }
}

/** What the customer answers; nobody but the customer knows the new address or the colour. */
function answerTo(
  { case: { orders, products, requests, givenPostcode } }: DeskState,
  about: Askable,
): string {
  const answers = requests.flatMap(({ kind, order, address, wish }) => {
    if (about === "order") return [`order #${orders[order]!.number} for ${kind}`];
    if (about === "address" && address !== undefined) return [`to ${address}`];
    if (about === "colour" && wish !== undefined) return [products[wish]!.colour];
    return [];
  });
  if (about === "postcode") answers.push(`postcode ${givenPostcode}`);
  return `The customer says: ${answers.length === 0 ? "that does not matter" : answers.join(", ")}.`;
}

/** All calls that would be carried out now. */
export function possibleCalls(state: DeskState, tools: readonly Tool[]): readonly ToolCall[] {
  const { customer, orders, products, requests, rules } = state.case;
  const calls: ToolCall[] = [];
  const add = (tool: string, given: Record<string, unknown>): void => {
    if (tools.some(({ name }) => name === tool)) calls.push({ tool, arguments: given });
  };
  for (const outcome of outcomes) add("close_case", { outcome });
  for (const { number } of products) add("get_product", { product: number });
  for (const topic of requestKinds) add("read_rule", { topic });
  for (const about of askable) add("ask_customer", { about });
  add("get_customer", { customer: customer.number });
  add("give_credit", { customer: customer.number, amount: rules.credit });
  for (const [index, { number: order }] of orders.entries()) {
    add("get_order", { order });
    const { status, product } = state.orders[index]!;
    if (!isLive(status)) continue;
    add("refund_order", { order });
    if (state.stock[product]! > 0) add("replace_product", { order });
    if (status !== "delivered") add("cancel_order", { order });
    for (const { address } of requests)
      if (address !== undefined && status !== "delivered")
        add("change_address", { order, address });
    for (const [at, { number, thing }] of products.entries())
      if (at !== product && thing === products[product]!.thing && state.stock[at]! > 0)
        add("exchange_product", { order, product: number });
  }
  return calls;
}

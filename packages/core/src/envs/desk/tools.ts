/** The tools of the desk. */
import type { Tool } from "../../text/tool.js";
import { type Level, requestKinds } from "./case.js";
import { outcomes } from "./rules.js";

/** What the customer can be asked about. */
export const askable = ["order", "address", "colour", "postcode"] as const;
export type Askable = (typeof askable)[number];

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

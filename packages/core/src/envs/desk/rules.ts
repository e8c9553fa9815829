/** The shop's rules: in words, and what they demand in a case. */
import type { ToolCall } from "../../text/tool.js";
import { type Case, GOLD_DAYS, type Request, type RequestKind, type Rules } from "./case.js";

/** How a case may be closed. */
export const outcomes = ["done", "partly", "refused"] as const;
export type Outcome = (typeof outcomes)[number];

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

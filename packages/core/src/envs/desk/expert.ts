/**
 * The expert of the desk: looks up what a decision needs, decides, closes the case. It knows what
 * it has seen and nothing else, so an agent that sees no more can imitate it.
 */
import type { ToolCall } from "../../text/tool.js";
import { sights } from "./act.js";
import { grant, isGenuine, type Request, rightOutcome } from "./case.js";
import { type DeskState, isLive } from "./state.js";

/** The next call. A case that is spoilt already is closed. */
export function expertCall(state: DeskState): ToolCall {
  const { case: start, seen } = state;
  const { level, customer, requests } = start;
  const call = (tool: string, given: Record<string, unknown>): ToolCall => ({
    tool,
    arguments: given,
  });
  const close = (): ToolCall => call("close_case", { outcome: rightOutcome(start) });
  const toKnow = (sight: number, tool: string, given: Record<string, unknown>) =>
    (seen & sight) === 0 ? call(tool, given) : undefined;

  if (level === "hard") {
    const identity =
      toKnow(sights.customer, "get_customer", { customer: customer.number }) ??
      toKnow(sights.asked("postcode"), "ask_customer", { about: "postcode" });
    if (identity !== undefined) return identity;
    if (!isGenuine(start)) return close();
  }
  if (level !== "easy") {
    const which = toKnow(sights.asked("order"), "ask_customer", { about: "order" });
    if (which !== undefined) return which;
  }
  for (const request of requests) {
    const next = lookUp(state, request, toKnow) ?? carryOut(state, request);
    if (next !== undefined) return next;
  }
  return close();
}

type ToKnow = (sight: number, tool: string, given: Record<string, unknown>) => ToolCall | undefined;

/** What is still to be looked up for a request. */
function lookUp(
  { case: start }: DeskState,
  request: Request,
  toKnow: ToKnow,
): ToolCall | undefined {
  const { level, customer, orders, products } = start;
  const { kind, order: at, wish } = request;
  const order = orders[at]!;
  const product = (index: number) =>
    toKnow(sights.product(index), "get_product", { product: products[index]!.number });
  const first =
    toKnow(sights.order(at), "get_order", { order: order.number }) ??
    (level === "easy" ? undefined : toKnow(sights.rule(kind), "read_rule", { topic: kind }));
  if (first !== undefined) return first;
  switch (kind) {
    case "broken":
      return product(order.product);
    case "return":
      return level === "easy" || order.place !== "delivered"
        ? undefined
        : toKnow(sights.customer, "get_customer", { customer: customer.number });
    case "address":
      return order.place === "open"
        ? toKnow(sights.asked("address"), "ask_customer", { about: "address" })
        : undefined;
    case "exchange":
      return order.place === "open"
        ? (toKnow(sights.asked("colour"), "ask_customer", { about: "colour" }) ??
            product(order.product) ??
            product(wish!))
        : undefined;
    default:
      return undefined;
  }
}

/** What is still to be done for a request. */
function carryOut(state: DeskState, request: Request): ToolCall | undefined {
  const call = grant(state.case, request);
  if (call === undefined) return undefined;
  if (request.kind === "late") return state.credit === 0 ? call : undefined;
  const { status, product, address } = state.orders[request.order]!;
  const open = isLive(status);
  switch (request.kind) {
    case "address":
      return open && address !== request.address ? call : undefined;
    case "exchange":
      return open && product !== request.wish && state.stock[request.wish!]! > 0 ? call : undefined;
    default:
      return open && !(call.tool === "replace_product" && state.stock[product] === 0)
        ? call
        : undefined;
  }
}

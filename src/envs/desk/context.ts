/** A case in words: what the customer wants, and all that a world model may know at the start. */
import type { Case, RequestKind } from "./case.js";
import { requestKinds } from "./case.js";
import { ruleText } from "./rules.js";
import { describeCustomer, describeOrder, describeProduct, initialState } from "./state.js";

const wants: Readonly<Record<RequestKind, (order: string) => string>> = {
  cancel: (order) => `wants to cancel ${order}`,
  return: (order) => `wants to return ${order}`,
  broken: (order) => `got a broken product with ${order}`,
  address: (order) => `wants ${order} sent to another address`,
  exchange: (order) => `wants another colour in ${order}`,
  late: (order) => `still waits for ${order}`,
};

/** What the customer comes with; the easy level says which order. */
export function goalOf({ level, customer, orders, requests }: Case): string {
  const parts = requests.map(({ kind, order }) =>
    wants[kind](level === "easy" ? `order #${orders[order]!.number}` : "an order"),
  );
  return `${level === "easy" ? "The customer" : `Customer #${customer.number}`} ${parts.join(" and ")}.`;
}

/** Everything that lookups and questions would show. */
export function describeStart(start: Case): string {
  const state = initialState(start);
  const { orders, products, requests, rules, saidPostcode } = start;
  const said = requests.map(({ kind, order, address, wish }) => {
    const more = address ?? (wish === undefined ? "" : products[wish]!.colour);
    return `${kind} order #${orders[order]!.number}${more === "" ? "" : `, ${more}`}`;
  });
  return [
    describeCustomer(state),
    ...orders.map((_, at) => describeOrder(state, at)),
    ...products.map((_, at) => describeProduct(state, at)),
    ...(start.level === "easy" ? [] : requestKinds.map((topic) => ruleText(topic, rules))),
    `The customer wants: ${said.join("; ")}. The customer knows: postcode ${saidPostcode}.`,
  ].join("\n");
}

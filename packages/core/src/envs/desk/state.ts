/** The desk's records while a case is worked on. */
import type { Case, Order, Place, Product } from "./case.js";

/** Where an order may be; what happened at the desk ends it. */
export type Status = Place | "cancelled" | "refunded" | "replaced";

interface OrderState {
  status: Status;
  product: number;
  address: string;
}

/** The records now, and what has been looked up. */
export interface DeskState {
  readonly case: Case;
  readonly orders: readonly OrderState[];
  readonly stock: number[];
  credit: number;
  /** What has been seen, one bit for each thing that can be asked for (`sights`). */
  seen: number;
}

/** The records at the start of a case. */
export function initialState(start: Case): DeskState {
  return {
    case: start,
    orders: start.orders.map(({ place, product, address }) => ({
      status: place,
      product,
      address,
    })),
    stock: start.products.map(({ stock }) => stock),
    credit: 0,
    seen: 0,
  };
}

/** An independent copy. */
export function copyState(state: DeskState): DeskState {
  return {
    ...state,
    orders: state.orders.map((order) => ({ ...order })),
    stock: state.stock.slice(),
  };
}

/** Whether two states of one case hold the same records. */
export function sameRecords(a: DeskState, b: DeskState): boolean {
  return (
    a.credit === b.credit &&
    a.stock.every((left, at) => left === b.stock[at]) &&
    a.orders.every(({ status, product, address }, at) => {
      const other = b.orders[at]!;
      return status === other.status && product === other.product && address === other.address;
    })
  );
}

/** Whether something can still be done with an order. */
export function isLive(status: Status): status is Place {
  return status === "open" || status === "sent" || status === "delivered";
}

/** A product in words. */
export function productName({ colour, thing, number }: Product): string {
  return `${colour} ${thing} #${number}`;
}

/** An order in words. */
export function describeOrder(state: DeskState, index: number): string {
  const { level, customer, orders, products } = state.case;
  const { number, days } = orders[index] as Order;
  const { status, product, address } = state.orders[index]!;
  const when = status === "sent" || status === "delivered" ? ` ${days} days ago` : "";
  const what = `${productName(products[product]!)}, ${status}${when}`;
  // As short as it can be for small models.
  if (level === "easy") return `Order #${number}: ${what}.`;
  return `Order #${number} of customer #${customer.number}: ${what}, to ${address}.`;
}

/** A product with its stock, and the colours it also comes in. */
export function describeProduct(state: DeskState, index: number): string {
  const { products } = state.case;
  const product = products[index]!;
  const others = products.filter(({ thing }, at) => thing === product.thing && at !== index);
  const list = others.map(({ number, colour }) => `${colour} #${number}`).join(", ");
  const also = list === "" ? "" : ` Also in ${list}.`;
  return `Product #${product.number}: ${product.colour} ${product.thing}, ${state.stock[index]} in stock.${also}`;
}

/** The customer. */
export function describeCustomer({ case: { customer, orders }, credit }: DeskState): string {
  const list = orders.map(({ number }) => `#${number}`).join(", ");
  const rank = customer.gold ? "gold" : "plain";
  return `Customer #${customer.number}: ${rank}, postcode ${customer.postcode}, credit ${credit}, orders ${list}.`;
}

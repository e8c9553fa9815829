/**
 * The shop of τ-bench and of τ²-bench: orders, products and customers. The two editions differ in a
 * few rules and in how they word refusals.
 */
import { calculate, isPermitted } from "./calculate.js";
import type { Table, TableDatabase } from "./database.js";
import { build } from "./model.js";
import { orderPayment, userAddress } from "./retail-models.js";
import {
  arithmetic,
  count,
  type Dict,
  deepCopy,
  dict,
  equal,
  field,
  iterate,
  jsonText,
  type List,
  length,
  less,
  lookUp,
  lower,
  PyError,
  refuse,
  round2,
  sorted,
  str,
  type Value,
} from "./value.js";
import { type Answer, type ToolDefinition, tool } from "./world.js";

/** Which of the two benchmarks. */
export type Edition = 1 | 2;

type Run = (db: TableDatabase, ...values: Value[]) => Answer;

const ADDRESS = "address1 address2 city state country zip";
const REASONS = ["no longer needed", "ordered by mistake"];

/** The shop's tools. */
export function retailTools(edition: Edition): ReadonlyMap<string, ToolDefinition<TableDatabase>> {
  const second = edition === 2;
  /** Refusals are worded alike, but for the first letter. */
  const no = (message: string): never =>
    refuse(second ? message[0]!.toUpperCase() + message.slice(1) : message);
  const find = (db: TableDatabase, table: string, id: Value, what: string): Dict =>
    lookUp(db.table(table), id) ?? no(`${what} not found`);
  const order = (db: TableDatabase, id: Value): Dict => find(db, "orders", id, "order");
  const own = (table: Table, id: Value): Dict => table.own(id as string);
  const payment = (db: TableDatabase, of: Dict, id: Value): Dict => {
    const user = find(db, "users", field(of, "user_id"), "user");
    return (
      lookUp(field<Map<string, Dict>>(user, "payment_methods"), id) ??
      no("payment method not found")
    );
  };
  const isGiftCard = (method: Dict): boolean => method.get("source") === "gift_card";
  /** Adds to a gift card's balance. */
  const credit = (db: TableDatabase, of: Dict, id: Value, amount: Value, sign: "+" | "-"): void => {
    const user = own(db.table("users"), of.get("user_id")!);
    const card = field<Map<string, Dict>>(user, "payment_methods").get(id as string)!;
    card.set("balance", round2(arithmetic(sign, card.get("balance")!, amount)));
  };
  /** A line of a payment history; τ² builds a record of it, with a float for the amount. */
  const paid = (type: string, amount: Value, id: Value): Dict => {
    const values = dict({ transaction_type: type, amount, payment_method_id: id });
    return second ? build(orderPayment, values) : values;
  };
  const address = (values: readonly Value[]): Dict => {
    const names = ADDRESS.split(" ");
    const given: Dict = new Map(names.map((name, at) => [name, values[at]!]));
    return second ? build(userAddress, given) : given;
  };
  const itemsOf = (of: Dict): readonly Dict[] => field<List>(of, "items") as Dict[];
  const itemIds = (of: Dict): List => itemsOf(of).map((item) => item.get("item_id")!);
  const itemWith = (of: Dict, id: Value): Dict =>
    itemsOf(of).find((item) => equal(item.get("item_id")!, id)) ??
    (second ? refuse(`Item ${str(id)} not found`) : outOfRange());
  const variantOf = (db: TableDatabase, item: Dict, id: Value): Dict => {
    const product = find(db, "products", item.get("product_id")!, "product");
    const variant = lookUp(field<Map<string, Dict>>(product, "variants"), id);
    if (variant === undefined && second) refuse("Variant not found");
    if (!variant?.get("available")) no(`new item ${str(id)} not found or available`);
    return variant!;
  };
  /** Checks that old and new items fit and gives the price difference and the last variant. */
  const compare = (
    db: TableDatabase,
    of: Dict,
    ids: Value,
    newIds: Value,
    kind: "exchange" | "modify",
  ): { readonly difference: bigint | number; readonly last: Dict | undefined } => {
    const all = itemIds(of);
    const exchange2 = second && kind === "exchange";
    for (const id of iterate(ids)) {
      if (count(ids, id) > count(all, id))
        refuse(exchange2 ? `Number of ${str(id)} not found.` : `${str(id)} not found`);
    }
    if (length(ids) !== length(newIds))
      no(`the number of items to be exchanged should match${exchange2 ? "." : ""}`);
    let difference: bigint | number = 0n;
    let last: Dict | undefined;
    for (const [id, newId] of zip(ids, newIds)) {
      if (second && kind === "modify" && equal(id, newId))
        refuse("The new item id should be different from the old item id");
      const item = itemWith(of, id);
      last = variantOf(db, item, newId);
      const step = arithmetic("-", last.get("price")!, item.get("price")!);
      difference = arithmetic("+", difference, step);
    }
    return { difference, last };
  };
  const covers = (method: Dict, amount: Value, what: string): void => {
    if (isGiftCard(method) && less(method.get("balance")!, amount))
      no(`insufficient gift card balance to pay for the ${what}`);
  };
  const requirePending = (of: Dict, act: string, loosely: boolean): void => {
    const status = field<string>(of, "status");
    if (loosely ? !status.includes("pending") : status !== "pending")
      no(`non-pending order cannot be ${act}`);
  };
  const requireDelivered = (of: Dict, act: string): void => {
    if (of.get("status") !== "delivered") no(`non-delivered order cannot be ${act}`);
  };
  const history = (of: Dict): Dict[] => field<List>(of, "payment_history") as Dict[];

  const cancel: Run = (db, id, reason) => {
    requirePending(order(db, id!), "cancelled", false);
    const known = second ? lookUp(new Map(REASONS.map((one) => [one, one])), reason!) : reason;
    if (!REASONS.includes(known as string)) no("invalid reason");
    const mine = own(db.table("orders"), id!);
    const refunds = history(mine).map((one) => {
      const [amount, method] = [one.get("amount")!, one.get("payment_method_id")!];
      if (isGiftCard(payment(db, mine, method))) credit(db, mine, method, amount, "+");
      return paid("refund", amount, method);
    });
    mine.set("status", "cancelled").set("cancel_reason", reason!);
    history(mine).push(...refunds);
    return mine;
  };
  const exchange: Run = (db, id, ids, newIds, method) => {
    const found = order(db, id!);
    requireDelivered(found, "exchanged");
    const difference = round2(compare(db, found, ids!, newIds!, "exchange").difference);
    covers(payment(db, found, method!), difference, "price difference");
    return own(db.table("orders"), id!)
      .set("status", "exchange requested")
      .set("exchange_items", sorted(ids!))
      .set("exchange_new_items", sorted(newIds!))
      .set("exchange_payment_method_id", method!)
      .set("exchange_price_difference", difference);
  };
  const modifyItems: Run = (db, id, ids, newIds, method) => {
    const found = order(db, id!);
    requirePending(found, "modified", false);
    const { difference, last } = compare(db, found, ids!, newIds!, "modify");
    const used = payment(db, found, method!);
    covers(used, difference, "new item");
    const mine = own(db.table("orders"), id!);
    const amount = difference > 0 ? difference : arithmetic("-", 0n, difference);
    history(mine).push(paid(difference > 0 ? "payment" : "refund", amount, method!));
    if (isGiftCard(used)) credit(db, mine, method!, difference, "-");
    for (const [old, fresh] of zip(ids!, newIds!)) {
      const item = itemWith(mine, old);
      // In τ² every changed item gets the price and options of the last one.
      const variant = second ? last! : variantOf(db, item, fresh);
      item.set("item_id", fresh).set("price", variant.get("price")!);
      item.set("options", deepCopy(variant.get("options")!));
    }
    return mine.set("status", "pending (item modified)");
  };
  const modifyPayment: Run = (db, id, method) => {
    const found = order(db, id!);
    requirePending(found, "modified", second);
    const used = payment(db, found, method!);
    const first = history(found)[0];
    if (history(found).length !== 1 || first!.get("transaction_type") !== "payment")
      no("there should be exactly one payment for a pending order");
    const before = first!.get("payment_method_id")!;
    if (equal(before, method!))
      no("the new payment method should be different from the current one");
    const amount = first!.get("amount")!;
    covers(used, amount, "order");
    const mine = own(db.table("orders"), id!);
    history(mine).push(paid("payment", amount, method!), paid("refund", amount, before));
    if (isGiftCard(used)) credit(db, mine, method!, amount, "-");
    if (isGiftCard(payment(db, mine, before))) credit(db, mine, before, amount, "+");
    return mine;
  };
  const giveBack: Run = (db, id, ids, method) => {
    const found = order(db, id!);
    requireDelivered(found, "returned");
    const used = payment(db, found, method!);
    if (!isGiftCard(used) && !equal(history(found)[0]!.get("payment_method_id")!, method!))
      no(
        second
          ? "payment method should be the original payment method"
          : "payment method should be either the original payment method or a gift card",
      );
    const all = itemIds(found);
    for (const one of iterate(ids!))
      if (count(ids!, one) > count(all, one)) no("some item not found");
    return own(db.table("orders"), id!)
      .set("status", "return requested")
      .set("return_items", sorted(ids!))
      .set("return_payment_method_id", method!);
  };
  const findUser = (db: TableDatabase, isIt: (user: Dict) => boolean): Value => {
    for (const [id, user] of db.table("users").entries()) if (isIt(user)) return id;
    return no("user not found");
  };
  const name = (user: Dict, part: string): string =>
    lower(field<Dict>(field<Dict>(user, "name"), part));
  const itemDetails: Run = (db, id) => {
    for (const [, product] of db.table("products").entries()) {
      const variant = lookUp(field<Map<string, Dict>>(product, "variants"), id!);
      if (variant !== undefined) return variant;
    }
    return no("item not found");
  };
  const tools: Record<string, ToolDefinition<TableDatabase>> = {
    calculate: tool("generic", "expression", (_, given) => evaluate(given!, no)),
    cancel_pending_order: tool("write", "order_id reason", cancel),
    exchange_delivered_order_items: tool(
      "write",
      "order_id item_ids new_item_ids payment_method_id",
      exchange,
    ),
    find_user_id_by_email: tool("read", "email", (db, email) =>
      findUser(db, (user) => lower(user.get("email")!) === lower(email!)),
    ),
    find_user_id_by_name_zip: tool("read", "first_name last_name zip", (db, first, last, zip) =>
      findUser(
        db,
        (user) =>
          name(user, "first_name") === lower(first!) &&
          name(user, "last_name") === lower(last!) &&
          equal(field<Dict>(user, "address").get("zip")!, zip!),
      ),
    ),
    get_order_details: tool("read", "order_id", (db, id) => order(db, id!)),
    get_product_details: tool("read", "product_id", (db, id) =>
      find(db, "products", id!, "product"),
    ),
    get_user_details: tool("read", "user_id", (db, id) => find(db, "users", id!, "user")),
    list_all_product_types: tool("read", "", (db) => productTypes(db)),
    modify_pending_order_address: tool("write", `order_id ${ADDRESS}`, (db, id, ...values) => {
      requirePending(order(db, id!), "modified", second);
      const fresh = address(values);
      return own(db.table("orders"), id!).set("address", fresh);
    }),
    modify_pending_order_items: tool(
      "write",
      "order_id item_ids new_item_ids payment_method_id",
      modifyItems,
    ),
    modify_pending_order_payment: tool("write", "order_id payment_method_id", modifyPayment),
    modify_user_address: tool("write", `user_id ${ADDRESS}`, (db, id, ...values) => {
      find(db, "users", id!, "user");
      const fresh = address(values);
      return own(db.table("users"), id!).set("address", fresh);
    }),
    return_delivered_order_items: tool("write", "order_id item_ids payment_method_id", giveBack),
    transfer_to_human_agents: tool("generic", "summary", () => "Transfer successful"),
    ...(second
      ? { get_item_details: tool("read", "item_id", itemDetails) }
      : { think: tool("generic", "thought", () => "") }),
  };
  return new Map(Object.entries(tools));
}

/** `calculate`, for any argument. */
export function evaluate(expression: Value, no: (message: string) => never): string {
  if (!iterate(expression).every(isPermitted)) no("invalid characters in expression");
  if (typeof expression !== "string")
    throw new PyError("TypeError", "eval() arg 1 must be a string, bytes or code object");
  return calculate(expression);
}

function productTypes(db: TableDatabase): string {
  const types: Dict = new Map();
  for (const [, product] of db.table("products").entries())
    types.set(field<string>(product, "name"), product.get("product_id")!);
  return jsonText(types, true);
}

function* zip(a: Value, b: Value): Generator<[Value, Value]> {
  const [as, bs] = [iterate(a), iterate(b)];
  for (let at = 0; at < Math.min(as.length, bs.length); at++) yield [as[at]!, bs[at]!];
}

function outOfRange(): never {
  throw new PyError("IndexError", "list index out of range");
}

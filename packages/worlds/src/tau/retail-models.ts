/** The records of τ²'s shop. */
import type { Kind, Model } from "./model.js";

const record = (name: string, fields: Model["fields"]): Model => ({ name, extra: "drop", fields });
const optional = (kind: Kind): Kind => ({ optional: kind });
const texts: Kind = { list: "str" };

const variant = record("Variant", [
  ["item_id", "str"],
  ["options", { dict: "str" }],
  ["available", "bool"],
  ["price", "float"],
]);

const product = record("Product", [
  ["name", "str"],
  ["product_id", "str"],
  ["variants", { dict: variant }],
]);

const userName = record("UserName", [
  ["first_name", "str"],
  ["last_name", "str"],
]);

/** An address. */
export const userAddress = record("UserAddress", [
  ["address1", "str"],
  ["address2", "str"],
  ["city", "str"],
  ["country", "str"],
  ["state", "str"],
  ["zip", "str"],
]);

const method = (name: string, source: string, fields: Model["fields"]): Model =>
  record(name, [["source", { oneOf: [source] }], ["id", "str"], ...fields]);

const paymentMethod: Kind = {
  union: [
    method("CreditCard", "credit_card", [
      ["brand", "str"],
      ["last_four", "str"],
    ]),
    method("Paypal", "paypal", []),
    method("GiftCard", "gift_card", [["balance", "float"]]),
  ],
};

const user = record("User", [
  ["user_id", "str"],
  ["name", userName],
  ["address", userAddress],
  ["email", "str"],
  ["payment_methods", { dict: paymentMethod }],
  ["orders", texts],
]);

const orderItem = record("OrderItem", [
  ["name", "str"],
  ["product_id", "str"],
  ["item_id", "str"],
  ["price", "float"],
  ["options", { dict: "str" }],
]);

const fulfillment = record("OrderFullfilment", [
  ["tracking_id", texts],
  ["item_ids", texts],
]);

/** A payment or refund of an order. */
export const orderPayment = record("OrderPayment", [
  ["transaction_type", { oneOf: ["payment", "refund"] }],
  ["amount", "float"],
  ["payment_method_id", "str"],
]);

const order = record("Order", [
  ["order_id", "str"],
  ["user_id", "str"],
  ["address", userAddress],
  ["items", { list: orderItem }],
  ["status", "str"],
  ["fulfillments", { list: fulfillment }],
  ["payment_history", { list: orderPayment }],
  ["cancel_reason", optional("str"), null],
  ["exchange_items", optional(texts), null],
  ["exchange_new_items", optional(texts), null],
  ["exchange_payment_method_id", optional("str"), null],
  ["exchange_price_difference", optional("float"), null],
  ["return_items", optional(texts), null],
  ["return_payment_method_id", optional("str"), null],
]);

/** The shop's database. */
export const retailDb: Model = {
  name: "RetailDB",
  extra: "refuse",
  fields: [
    ["products", { dict: product }],
    ["users", { dict: user }],
    ["orders", { dict: order }],
  ],
};

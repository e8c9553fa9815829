/** The records of τ²'s airline. */
import type { Kind, Model } from "./model.js";

const record = (name: string, fields: Model["fields"]): Model => ({ name, extra: "drop", fields });
const literal = (...names: readonly string[]): Kind => ({ literal: names });

const address = record("Address", [
  ["address1", "str"],
  ["address2", { optional: "str" }, null],
  ["city", "str"],
  ["country", "str"],
  ["state", "str"],
  ["zip", "str"],
]);

/** A payment, or a refund if it is negative. */
export const payment = record("Payment", [
  ["payment_id", "str"],
  ["amount", "int"],
]);

const method = (name: string, source: string, fields: Model["fields"]): Model =>
  record(name, [["source", literal(source)], ["id", "str"], ...fields]);

/** A travel certificate. */
export const certificate = method("Certificate", "certificate", [["amount", "float"]]);

const paymentMethod: Kind = {
  union: [
    method("CreditCard", "credit_card", [
      ["brand", "str"],
      ["last_four", "str"],
    ]),
    method("GiftCard", "gift_card", [["amount", "float"]]),
    certificate,
  ],
};

/** A passenger. */
export const passenger = record("Passenger", [
  ["first_name", "str"],
  ["last_name", "str"],
  ["dob", "str"],
]);

const day = (name: string, status: string, fields: Model["fields"]): Model =>
  record(name, [["status", literal(status)], ...fields]);
const departs = (how: string): Model["fields"][number] => [`${how}_departure_time_est`, "str"];
const arrives = (how: string): Model["fields"][number] => [`${how}_arrival_time_est`, "str"];

const dayStatus: Kind = {
  union: [
    day("FlightDateStatusAvailable", "available", [
      ["available_seats", { dict: "int" }],
      ["prices", { dict: "int" }],
    ]),
    day("FlightDateStatusLanded", "landed", [departs("actual"), arrives("actual")]),
    day("FlightDateStatusCancelled", "cancelled", []),
    day("FlightDateStatusDelayed", "delayed", [departs("estimated"), arrives("estimated")]),
    day("FlightDataStatusFlying", "flying", [departs("actual"), arrives("estimated")]),
    day("FlightDataStatusOnTime", "on time", [departs("estimated"), arrives("estimated")]),
  ],
};

const route: Model["fields"] = [
  ["flight_number", "str"],
  ["origin", "str"],
  ["destination", "str"],
];

const flight = record("Flight", [
  ...route,
  departs("scheduled"),
  arrives("scheduled"),
  ["dates", { dict: dayStatus }],
]);

/** A flight of a reservation. */
export const reservationFlight = record("ReservationFlight", [
  ...route,
  ["date", "str"],
  ["price", "int"],
]);

/** A flight as it is asked for. */
export const flightInfo = record("FlightInfo", [
  ["flight_number", "str"],
  ["date", "str"],
]);

/** A reservation. */
export const reservation = record("Reservation", [
  ["reservation_id", "str"],
  ["user_id", "str"],
  ["origin", "str"],
  ["destination", "str"],
  ["flight_type", literal("round_trip", "one_way")],
  ["cabin", literal("business", "economy", "basic_economy")],
  ["flights", { list: reservationFlight }],
  ["passengers", { list: passenger }],
  ["payment_history", { list: payment }],
  ["created_at", "str"],
  ["total_baggages", "int"],
  ["nonfree_baggages", "int"],
  ["insurance", literal("yes", "no")],
  ["status", { optional: literal("cancelled") }, null],
]);

/** The airline's database. Versions of it differ in what they call a user's name. */
export function airlineDb(nameField: "name" | "full_name"): Model {
  const user = record("User", [
    ["user_id", "str"],
    [
      nameField,
      record("Name", [
        ["first_name", "str"],
        ["last_name", "str"],
      ]),
    ],
    ["address", address],
    ["email", "str"],
    ["dob", "str"],
    ["payment_methods", { dict: paymentMethod }],
    ["saved_passengers", { list: passenger }],
    ["membership", literal("gold", "silver", "regular")],
    ["reservations", { list: "str" }],
  ]);
  return {
    name: "FlightDB",
    extra: "refuse",
    fields: [
      ["flights", { dict: flight }],
      ["users", { dict: user }],
      ["reservations", { dict: reservation }],
    ],
  };
}

/** The airline of τ-bench: flights, reservations and customers. It is 15 May 2024, 15:00. */
import type { TableDatabase } from "./database.js";
import { evaluate } from "./retail.js";
import {
  arithmetic,
  type Dict,
  deepCopy,
  dict,
  equal,
  field,
  iterate,
  type List,
  length,
  less,
  lookUp,
  PyError,
  refuse,
  repr,
  str,
  typeName,
  type Value,
} from "./value.js";
import { type Answer, type ToolDefinition, tool } from "./world.js";

type Run = (db: TableDatabase, ...values: Value[]) => Answer;

/** Ids of new reservations. */
const NEW_RESERVATIONS = ["HATHAT", "HATHAU", "HATHAV"] as const;
/** Numbers of new certificates. */
const NEW_CERTIFICATES = [3221322, 3221323, 3221324] as const;
/** When it is. */
const NOW = "2024-05-15T15:00:00";
/** The cities by their airports. */
const AIRPORTS = Object.fromEntries(
  `SFO San Francisco; JFK New York; LAX Los Angeles; ORD Chicago; DFW Dallas; DEN Denver;
  SEA Seattle; ATL Atlanta; MIA Miami; BOS Boston; PHX Phoenix; IAH Houston; LAS Las Vegas;
  MCO Orlando; EWR Newark; CLT Charlotte; MSP Minneapolis; DTW Detroit; PHL Philadelphia;
  LGA LaGuardia`
    .split(/;\s+/)
    .map((one): [string, string] => [one.slice(0, 3), one.slice(4)]),
);

const find = (db: TableDatabase, table: string, id: Value, what: string): Dict =>
  lookUp(db.table(table), id) ?? refuse(`${what} not found`);

/** `record[key]` for any key. */
function item(record: Value, key: Value): Value {
  if (record instanceof Map) {
    const value = lookUp(record, key);
    if (value === undefined) throw new PyError("KeyError", repr(key));
    return value;
  }
  if (typeof record === "string")
    throw new PyError("TypeError", "string indices must be integers, not 'str'");
  if (Array.isArray(record))
    throw new PyError("TypeError", "list indices must be integers or slices, not str");
  throw notSubscriptable(record);
}

const notSubscriptable = (value: Value): PyError =>
  new PyError("TypeError", `'${typeName(value)}' object is not subscriptable`);

/** A customer's payment methods by id. */
const methodsOf = (user: Dict): Map<string, Dict> =>
  field<Map<string, Dict>>(user, "payment_methods");

/** Fills in a booked flight's price and airports, or refuses it. */
function bookFlight(db: TableDatabase, flight: Dict, cabin: Value, passengers: Value): Value {
  const number = item(flight, "flight_number");
  const data = lookUp(db.table("flights"), number) ?? refuse(`flight ${str(number)} not found`);
  const date = item(flight, "date");
  const day =
    lookUp(field<Map<string, Dict>>(data, "dates"), date) ??
    refuse(`flight ${str(number)} not found on date ${str(date)}`);
  if (day.get("status") !== "available")
    refuse(`flight ${str(number)} not available on date ${str(date)}`);
  if (less(item(day.get("available_seats")!, cabin), BigInt(length(passengers))))
    refuse(`not enough seats on flight ${str(number)}`);
  const price = item(day.get("prices")!, cabin);
  flight.set("price", price);
  flight.set("origin", data.get("origin")!).set("destination", data.get("destination")!);
  return price;
}

const book: Run = (
  db,
  userId,
  origin,
  destination,
  type,
  cabin,
  flights,
  passengers,
  methods,
  total,
  nonfree,
  insurance,
) => {
  const user = find(db, "users", userId!, "user");
  const reservations = db.table("reservations");
  const id =
    NEW_RESERVATIONS.find((one) => reservations.get(one) === undefined) ?? NEW_RESERVATIONS[2];
  const booked = iterate(deepCopy(flights!)) as Dict[];
  let price: bigint | number = 0n;
  const times = (value: Value): void => {
    price = arithmetic("+", price, arithmetic("*", value, BigInt(length(passengers!))));
  };
  for (const flight of booked) times(bookFlight(db, flight, cabin!, passengers!));
  if (insurance === "yes") times(30n);
  // Python repeats a text or list, and cannot add that.
  if (typeof nonfree === "string" || Array.isArray(nonfree))
    throw new PyError(
      "TypeError",
      `unsupported operand type(s) for +=: '${typeName(price)}' and '${typeName(nonfree)}'`,
    );
  price = arithmetic("+", price, arithmetic("*", 50n, nonfree!));
  let paid: bigint | number = 0n;
  for (const method of iterate(methods!)) {
    const [payment, amount] = [item(method, "payment_id"), item(method, "amount")];
    const known =
      lookUp(methodsOf(user), payment) ?? refuse(`payment method ${str(payment)} not found`);
    if (known.get("source") !== "credit_card" && less(known.get("amount")!, amount))
      refuse(`not enough balance in payment method ${str(payment)}`);
    paid = arithmetic("+", paid, amount);
  }
  if (!equal(paid, price))
    refuse(`payment amount does not add up, total price is ${str(price)}, but paid ${str(paid)}`);
  const mine = db.table("users").own(userId as string);
  for (const method of iterate(methods!) as Dict[]) {
    const payment = method.get("payment_id") as string;
    const used = methodsOf(mine).get(payment);
    if (used === undefined) throw new PyError("KeyError", repr(payment));
    if (used.get("source") === "gift_card")
      used.set("amount", arithmetic("-", used.get("amount")!, method.get("amount")!));
    else if (used.get("source") === "certificate") methodsOf(mine).delete(payment);
  }
  const reservation = dict({
    reservation_id: id,
    user_id: userId!,
    origin: origin!,
    destination: destination!,
    flight_type: type!,
    cabin: cabin!,
    flights: booked,
    passengers: deepCopy(passengers!),
    payment_history: deepCopy(methods!),
    created_at: NOW,
    total_baggages: total!,
    nonfree_baggages: nonfree!,
    insurance: insurance!,
  });
  reservations.put(id, reservation);
  field<List>(mine, "reservations").push(id);
  return reservation;
};

/** Charges a change of a reservation to the customer, or refuses the payment method. */
function charge(
  db: TableDatabase,
  reservation: Dict,
  id: Value,
  price: bigint | number,
): () => void {
  const userId = field<string>(reservation, "user_id");
  const method =
    lookUp(methodsOf(db.table("users").get(userId)!), id) ?? refuse("payment method not found");
  if (method.get("source") === "certificate")
    refuse("certificate cannot be used to update reservation");
  const card = method.get("source") === "gift_card";
  if (card && less(method.get("amount")!, price)) refuse("gift card balance is not enough");
  return () => {
    if (card) {
      const mine = methodsOf(db.table("users").own(userId)).get(id as string)!;
      mine.set("amount", arithmetic("-", mine.get("amount")!, price));
    }
    if (!equal(price, 0n))
      field<List>(reservation, "payment_history").push(dict({ payment_id: id, amount: price }));
  };
}

const reservationOf = (db: TableDatabase, id: Value): Dict =>
  find(db, "reservations", id, "reservation");
const ownReservation = (db: TableDatabase, id: Value): Dict =>
  db.table("reservations").own(id as string);

const updateFlights: Run = (db, id, cabin, given, payment) => {
  const found = reservationOf(db, id!);
  const seats = length(found.get("passengers")!);
  const flights = iterate(deepCopy(given!)) as Dict[];
  const before = field<List>(found, "flights") as Dict[];
  let price: bigint | number = 0n;
  for (const flight of flights) {
    const kept = before.find(
      (one) =>
        equal(one.get("flight_number")!, item(flight, "flight_number")) &&
        equal(one.get("date")!, item(flight, "date")) &&
        equal(cabin!, found.get("cabin")!),
    );
    if (kept !== undefined)
      for (const name of ["price", "origin", "destination"]) flight.set(name, kept.get(name)!);
    const each = kept?.get("price") ?? bookFlight(db, flight, cabin!, found.get("passengers")!);
    price = arithmetic("+", price, arithmetic("*", each, BigInt(seats)));
  }
  const was = before.reduce<bigint | number>(
    (sum, one) => arithmetic("+", sum, one.get("price")!),
    0n,
  );
  price = arithmetic("-", price, arithmetic("*", was, BigInt(seats)));
  charge(db, found, payment!, price);
  const mine = ownReservation(db, id!);
  mine.set("flights", flights);
  charge(db, mine, payment!, price)();
  return mine;
};

const updateBaggages: Run = (db, id, total, nonfree, payment) => {
  const found = reservationOf(db, id!);
  const more = arithmetic("-", nonfree!, found.get("nonfree_baggages")!);
  const price = arithmetic("*", 50n, less(0n, more) ? more : 0n);
  charge(db, found, payment!, price);
  const mine = ownReservation(db, id!);
  mine.set("total_baggages", total!).set("nonfree_baggages", nonfree!);
  charge(db, mine, payment!, price)();
  return mine;
};

const cancel: Run = (db, id) => {
  reservationOf(db, id!);
  const mine = ownReservation(db, id!);
  const history = field<List>(mine, "payment_history") as Dict[];
  const refunds = history.map((one) =>
    dict({
      payment_id: one.get("payment_id")!,
      amount: arithmetic("*", -1n, one.get("amount")!),
    }),
  );
  history.push(...refunds);
  return mine.set("status", "cancelled");
};

const sendCertificate: Run = (db, userId, amount) => {
  const user = find(db, "users", userId!, "user");
  const ids = NEW_CERTIFICATES.map((number) => `certificate_${number}`);
  const id = ids.find((one) => !methodsOf(user).has(one));
  if (id === undefined) return null;
  const methods = methodsOf(db.table("users").own(userId as string));
  methods.set(id, dict({ source: "certificate", amount: amount!, id }));
  return `Certificate ${id} added to user ${str(userId!)} with amount ${str(amount!)}.`;
};

/** A flight as search results show it: with one day's facts instead of all days. */
function shown(flight: Dict, day: Dict, date?: Value): Dict {
  const result: Dict = new Map([...flight].filter(([key]) => key !== "dates"));
  for (const [key, value] of day) result.set(key, value);
  if (date !== undefined) result.set("date", date);
  return result;
}

const dayOf = (flight: Dict, date: Value): Dict | undefined =>
  lookUp(field<Map<string, Dict>>(flight, "dates"), date);

const isOpen = (day: Dict | undefined): day is Dict => day?.get("status") === "available";

const searchDirect: Run = (db, origin, destination, date) => {
  const results: List = [];
  for (const [, flight] of db.table("flights").entries()) {
    if (!equal(flight.get("origin")!, origin!) || !equal(flight.get("destination")!, destination!))
      continue;
    const day = dayOf(flight, date!);
    if (isOpen(day)) results.push(shown(flight, day));
  }
  return results;
};

const searchOneStop: Run = (db, origin, destination, date) => {
  const results: List = [];
  for (const [, first] of db.table("flights").entries()) {
    if (!equal(first.get("origin")!, origin!)) continue;
    for (const [, second] of db.table("flights").entries()) {
      if (!equal(second.get("destination")!, destination!)) continue;
      if (!equal(first.get("destination")!, second.get("origin")!)) continue;
      const arrival = field<string>(first, "scheduled_arrival_time_est");
      const next = arrival.includes("+1") ? nextDay(date!) : date!;
      if (arrival > field<string>(second, "scheduled_departure_time_est")) continue;
      const [day, day2] = [dayOf(first, date!), dayOf(second, next)];
      if (!isOpen(day) || !isOpen(day2)) continue;
      // The second leg's seats and prices are those of the first day, also after midnight.
      const facts = dayOf(second, date!);
      if (facts === undefined) throw new PyError("KeyError", repr(date!));
      results.push([shown(first, day, date!), shown(second, facts, next)]);
    }
  }
  return results;
};

/** The day after, as the original counts: within May. */
function nextDay(date: Value): string {
  if (Array.isArray(date))
    throw new PyError(
      "TypeError",
      "int() argument must be a string, a bytes-like object or a real number, not 'list'",
    );
  if (typeof date !== "string") throw notSubscriptable(date);
  const day = date.slice(-2);
  if (!/^\s*[+-]?\d+\s*$/.test(day))
    throw new PyError("ValueError", `invalid literal for int() with base 10: ${repr(day)}`);
  return `2024-05-${Number(day) + 1}`;
}

/** The airline's tools. */
export const airlineTools: ReadonlyMap<string, ToolDefinition<TableDatabase>> = new Map(
  Object.entries({
    book_reservation: tool(
      "write",
      "user_id origin destination flight_type cabin flights passengers payment_methods total_baggages nonfree_baggages insurance",
      book,
    ),
    calculate: tool("generic", "expression", (_, expression) => evaluate(expression!, refuse)),
    cancel_reservation: tool("write", "reservation_id", cancel),
    // The original's words for an unknown reservation are those for an unknown user.
    get_reservation_details: tool("read", "reservation_id", (db, id) =>
      find(db, "reservations", id!, "user"),
    ),
    get_user_details: tool("read", "user_id", (db, id) => find(db, "users", id!, "user")),
    list_all_airports: tool("read", "", () => dict(AIRPORTS)),
    search_direct_flight: tool("read", "origin destination date", searchDirect),
    search_onestop_flight: tool("read", "origin destination date", searchOneStop),
    send_certificate: tool("write", "user_id amount", sendCertificate),
    think: tool("generic", "thought", () => ""),
    transfer_to_human_agents: tool("generic", "summary", () => "Transfer successful"),
    update_reservation_baggages: tool(
      "write",
      "reservation_id total_baggages nonfree_baggages payment_id",
      updateBaggages,
    ),
    update_reservation_flights: tool(
      "write",
      "reservation_id cabin flights payment_id",
      updateFlights,
    ),
    update_reservation_passengers: tool(
      "write",
      "reservation_id passengers",
      (db, id, passengers) => {
        const found = reservationOf(db, id!);
        if (length(passengers!) !== length(found.get("passengers")!))
          refuse("number of passengers does not match");
        return ownReservation(db, id!).set("passengers", deepCopy(passengers!));
      },
    ),
  } satisfies Record<string, ToolDefinition<TableDatabase>>),
);

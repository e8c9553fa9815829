/**
 * The airline of τ²: that of τ with records that are checked, seats that are taken, and a cabin that
 * is stored. Written from the original's source; its database was not at hand, so no recording was
 * compared.
 */
import {
  AIRPORTS,
  methodsOf,
  NEW_CERTIFICATES,
  NEW_RESERVATIONS,
  NOW,
  nextDay,
} from "./airline.js";
import {
  certificate,
  flightInfo,
  passenger,
  payment,
  reservationFlight,
  reservation as reservationModel,
} from "./airline2-models.js";
import type { TableDatabase } from "./database.js";
import { build, type Model } from "./model.js";
import { evaluate } from "./retail.js";
import { type Answer, type ToolDefinition, tool } from "./toolkit.js";
import {
  arithmetic,
  type Dict,
  deepCopy,
  dict,
  equal,
  field,
  isDict,
  iterate,
  type List,
  length,
  less,
  lookUp,
  noAttribute,
  PyError,
  refuse,
  repr,
  str,
  type Value,
} from "./value.js";

type Run = (db: TableDatabase, ...values: Value[]) => Answer;

const find = (db: TableDatabase, table: string, id: Value, what: string): Dict =>
  lookUp(db.table(table), id) ?? refuse(`${what} ${str(id)} not found`);
const userOf = (db: TableDatabase, id: Value): Dict => find(db, "users", id, "User");
const reservationOf = (db: TableDatabase, id: Value): Dict =>
  find(db, "reservations", id, "Reservation");

/** A list of records from arguments: built if all are objects, else what they lack is missed. */
function recordsOf(model: Model, given: Value): Dict[] {
  const list = iterate(given);
  const other = list.find((one) => !isDict(one));
  if (other !== undefined) throw noAttribute(other, model.fields[0]![0]);
  return list.map((one) => build(model, one as Dict));
}

function dayOf(db: TableDatabase, number: Value, date: Value): Dict {
  const flight = find(db, "flights", number, "Flight");
  return (
    lookUp(field<Map<string, Dict>>(flight, "dates"), date) ??
    refuse(`Flight ${str(number)} not found on date ${str(date)}`)
  );
}

const ofCabin = (record: Dict, name: string, cabin: Value): Value => {
  const value = lookUp(field<Dict>(record, name), cabin);
  if (value === undefined) throw new PyError("KeyError", repr(cabin));
  return value;
};

/** A flight of a reservation, if it can be booked for so many. */
function bookable(db: TableDatabase, info: Dict, cabin: Value, seats: number): Dict {
  const number = info.get("flight_number")!;
  const date = info.get("date")!;
  const flight = find(db, "flights", number, "Flight");
  const day = dayOf(db, number, date);
  if (day.get("status") !== "available")
    refuse(`Flight ${str(number)} not available on date ${str(date)}`);
  if (less(ofCabin(day, "available_seats", cabin), BigInt(seats)))
    refuse(`Not enough seats on flight ${str(number)}`);
  const values = { flight_number: number, date, price: ofCabin(day, "prices", cabin) };
  const ends = { origin: flight.get("origin")!, destination: flight.get("destination")! };
  return build(reservationFlight, dict({ ...values, ...ends }));
}

const times = (price: Value, count: number): bigint | number =>
  arithmetic("*", price, BigInt(count));
const sumOf = (records: readonly Dict[], name: string): bigint | number =>
  records.reduce<bigint | number>((sum, one) => arithmetic("+", sum, one.get(name)!), 0n);

const book: Run = (
  db,
  userId,
  origin,
  destination,
  type,
  cabin,
  flights,
  given,
  methods,
  total,
  nonfree,
  insurance,
) => {
  const infos = recordsOf(flightInfo, flights!);
  const passengers = recordsOf(passenger, given!);
  const payments = recordsOf(payment, methods!);
  const user = userOf(db, userId!);
  const id =
    NEW_RESERVATIONS.find((one) => db.table("reservations").get(one) === undefined) ??
    refuse("Too many reservations");
  const made = build(
    reservationModel,
    dict({
      reservation_id: id,
      user_id: userId!,
      origin: origin!,
      destination: destination!,
      flight_type: type!,
      cabin: cabin!,
      flights: [],
      passengers: deepCopy(passengers),
      payment_history: deepCopy(payments),
      created_at: NOW,
      total_baggages: total!,
      nonfree_baggages: nonfree!,
      insurance: insurance!,
    }),
  );
  const booked = infos.map((info) => bookable(db, info, cabin!, passengers.length));
  field<List>(made, "flights").push(...booked);
  const each = arithmetic("+", sumOf(booked, "price"), insurance === "yes" ? 30n : 0n);
  const bags = arithmetic("*", 50n, nonfree!);
  const price = arithmetic("+", times(each, passengers.length), bags);
  for (const one of payments) {
    const used = one.get("payment_id")!;
    const known = lookUp(methodsOf(user), used) ?? refuse(`Payment method ${str(used)} not found`);
    if (known.get("source") !== "credit_card" && less(known.get("amount")!, one.get("amount")!))
      refuse(`Not enough balance in payment method ${str(used)}`);
  }
  const paid = sumOf(payments, "amount");
  if (!equal(paid, price))
    refuse(`Payment amount does not add up, total price is ${str(price)}, but paid ${str(paid)}`);
  const mine = db.table("users").own(userId as string);
  for (const one of payments) {
    const used = one.get("payment_id") as string;
    const known = methodsOf(mine).get(used);
    if (known === undefined) throw new PyError("KeyError", repr(used));
    if (known.get("source") === "gift_card")
      known.set("amount", arithmetic("-", known.get("amount")!, one.get("amount")!));
    else if (known.get("source") === "certificate") methodsOf(mine).delete(used);
  }
  for (const info of infos) {
    const flight = db.table("flights").own(info.get("flight_number") as string);
    const day = field<Map<string, Dict>>(flight, "dates").get(info.get("date") as string)!;
    const seats = field<Dict>(day, "available_seats");
    const left = arithmetic("-", seats.get(cabin as string)!, BigInt(passengers.length));
    seats.set(cabin as string, left);
  }
  db.table("reservations").put(id, made);
  field<List>(mine, "reservations").push(id);
  return made;
};

/** Pays for a change of a reservation. */
function pay(db: TableDatabase, reservation: Dict, id: Value, price: bigint | number): void {
  const userId = field<string>(reservation, "user_id");
  const method = lookUp(methodsOf(userOf(db, userId)), id) ?? refuse("Payment method not found");
  if (method.get("source") === "certificate")
    refuse("Certificate cannot be used to update reservation");
  if (method.get("source") === "gift_card") {
    if (less(method.get("amount")!, price)) refuse("Gift card balance is not enough");
    const card = methodsOf(db.table("users").own(userId)).get(id as string)!;
    card.set("amount", arithmetic("-", card.get("amount")!, price));
  }
  if (equal(price, 0n)) return;
  const made = build(payment, dict({ payment_id: id, amount: price }));
  field<List>(
    db.table("reservations").own(reservation.get("reservation_id") as string),
    "payment_history",
  ).push(made);
}

const updateFlights: Run = (db, id, cabin, given, method) => {
  const infos = recordsOf(flightInfo, given!);
  const found = reservationOf(db, id!);
  const seats = length(found.get("passengers")!);
  const before = field<List>(found, "flights") as Dict[];
  const flights = infos.map(
    (info) =>
      before.find(
        (one) =>
          equal(one.get("flight_number")!, info.get("flight_number")!) &&
          equal(one.get("date")!, info.get("date")!) &&
          equal(cabin!, found.get("cabin")!),
      ) ?? bookable(db, info, cabin!, seats),
  );
  const price = arithmetic(
    "-",
    times(sumOf(flights, "price"), seats),
    times(sumOf(before, "price"), seats),
  );
  pay(db, found, method!, price);
  return db
    .table("reservations")
    .own(id as string)
    .set("flights", deepCopy(flights))
    .set("cabin", cabin!);
};

const updateBaggages: Run = (db, id, total, nonfree, method) => {
  const found = reservationOf(db, id!);
  const more = arithmetic("-", nonfree!, found.get("nonfree_baggages")!);
  pay(db, found, method!, arithmetic("*", 50n, less(0n, more) ? more : 0n));
  const mine = db.table("reservations").own(id as string);
  return mine.set("total_baggages", total!).set("nonfree_baggages", nonfree!);
};

const cancel: Run = (db, id) => {
  reservationOf(db, id!);
  const mine = db.table("reservations").own(id as string);
  const history = field<List>(mine, "payment_history") as Dict[];
  const refunds = history.map((one) => {
    const amount = arithmetic("*", -1n, one.get("amount")!);
    return build(payment, dict({ payment_id: one.get("payment_id")!, amount }));
  });
  history.push(...refunds);
  return mine.set("status", "cancelled");
};

const sendCertificate: Run = (db, userId, amount) => {
  const user = userOf(db, userId!);
  const ids = NEW_CERTIFICATES.map((number) => `certificate_${number}`);
  const id = ids.find((one) => !methodsOf(user).has(one)) ?? refuse("Too many certificates");
  const made = build(certificate, dict({ id, amount: amount!, source: "certificate" }));
  methodsOf(db.table("users").own(userId as string)).set(id, made);
  return `Certificate ${id} added to user ${str(userId!)} with amount ${str(amount!)}.`;
};

/** Flights without a stop; what is null is not asked for. */
function direct(
  db: TableDatabase,
  date: Value,
  from: Value,
  to: Value,
  after: string | null,
): Dict[] {
  const results: Dict[] = [];
  for (const [, flight] of db.table("flights").entries()) {
    if (from !== null && !equal(flight.get("origin")!, from)) continue;
    if (to !== null && !equal(flight.get("destination")!, to)) continue;
    const day = lookUp(field<Map<string, Dict>>(flight, "dates"), date);
    if (day?.get("status") !== "available") continue;
    const departure = field<string>(flight, "scheduled_departure_time_est");
    if (after !== null && departure < after) continue;
    results.push(
      dict({
        flight_number: flight.get("flight_number")!,
        origin: flight.get("origin")!,
        destination: flight.get("destination")!,
        status: "available",
        scheduled_departure_time_est: departure,
        scheduled_arrival_time_est: flight.get("scheduled_arrival_time_est")!,
        date: null,
        available_seats: day.get("available_seats")!,
        prices: day.get("prices")!,
      }),
    );
  }
  return results;
}

const oneStop: Run = (db, origin, destination, date) =>
  direct(db, date!, origin!, null, null).flatMap((first) => {
    const arrival = field<string>(first, "scheduled_arrival_time_est");
    const next = arrival.includes("+1") ? nextDay(date!) : date!;
    return direct(db, next, first.get("destination")!, destination!, arrival).map(
      (second): List => [new Map(first).set("date", date!), second.set("date", next)],
    );
  });

/** The airline's tools. */
export const airline2Tools: Readonly<Record<string, ToolDefinition<TableDatabase>>> = {
  book_reservation: tool(
    "write",
    "user_id origin destination flight_type cabin flights passengers payment_methods total_baggages nonfree_baggages insurance",
    book,
  ),
  calculate: tool("generic", "expression", (_, expression) =>
    evaluate(expression!, (message) => refuse(message[0]!.toUpperCase() + message.slice(1))),
  ),
  cancel_reservation: tool("write", "reservation_id", cancel),
  get_reservation_details: tool("read", "reservation_id", (db, id) => reservationOf(db, id!)),
  get_user_details: tool("read", "user_id", (db, id) => userOf(db, id!)),
  list_all_airports: tool("read", "", () =>
    Object.entries(AIRPORTS).map(([iata, city]) => dict({ iata, city })),
  ),
  search_direct_flight: tool("read", "origin destination date", (db, origin, destination, date) =>
    direct(db, date!, origin!, destination!, null),
  ),
  search_onestop_flight: tool("read", "origin destination date", oneStop),
  send_certificate: tool("write", "user_id amount", sendCertificate),
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
  update_reservation_passengers: tool("write", "reservation_id passengers", (db, id, given) => {
    const passengers = recordsOf(passenger, given!);
    const found = reservationOf(db, id!);
    if (passengers.length !== length(found.get("passengers")!))
      refuse("Number of passengers does not match");
    return db
      .table("reservations")
      .own(id as string)
      .set("passengers", passengers);
  }),
  get_flight_status: tool(
    "read",
    "flight_number date",
    (db, number, date) => dayOf(db, number!, date!).get("status")!,
  ),
};

/** What the agent of τ²'s telecom domain can do: the carrier's customers, lines and bills. */
import { type Database, recordDatabase } from "./database.js";
import { build } from "./model.js";
import { bill, lineItem } from "./telecom-models.js";
import {
  arithmetic,
  type Dict,
  dict,
  equal,
  field,
  fixed2,
  isNumber,
  type List,
  less,
  lower,
  noAttribute,
  PyError,
  refuse,
  str,
  truthy,
  type Value,
} from "./value.js";
import { type Answer, methodsOf, type ToolDefinition, type Toolkit, tool } from "./world.js";

/** The carrier's database, with the number of bills that got an id here. */
export interface Carrier extends Database {
  readonly root: Dict;
  bills: number;
  copy(): Carrier;
}

/** The database of a carrier. */
export function createCarrier(root: Dict, bills = 0): Carrier {
  const database = recordDatabase(root);
  return {
    root,
    bills,
    hash: database.hash,
    copy() {
      return createCarrier(database.copy().root, this.bills);
    },
  };
}

const TODAY = "2025-02-25";
const CYCLE_END = "2025-02-28";
/** The bill of the next month, which charges go to. */
const NEXT_BILL = {
  period_start: "2025-03-01",
  period_end: "2025-03-31",
  issue_date: "2025-03-01",
  due_date: "2025-03-15",
};
/** The bill of the last month, which a suspended line was not paid with. */
const LAST_BILL = {
  period_start: "2025-01-01",
  period_end: "2025-01-31",
  issue_date: "2025-01-01",
  due_date: "2025-01-15",
};

type Run = (db: Carrier, ...values: Value[]) => Answer;

const rows = (db: Carrier, table: string): Dict[] => field<List>(db.root, table) as Dict[];

const byId = (db: Carrier, table: string, key: string, id: Value, what: string): Dict =>
  rows(db, table).find((row) => equal(row.get(key)!, id)) ??
  refuse(`${what} with ID ${str(id)} not found`);

const customerById = (db: Carrier, id: Value): Dict =>
  byId(db, "customers", "customer_id", id, "Customer");
const lineById = (db: Carrier, id: Value): Dict => byId(db, "lines", "line_id", id, "Line");
const billById = (db: Carrier, id: Value): Dict => byId(db, "bills", "bill_id", id, "Bill");
const planOf = (db: Carrier, line: Dict): Dict =>
  byId(db, "plans", "plan_id", line.get("plan_id")!, "Plan");

const has = (record: Dict, name: string, id: Value): boolean =>
  field<List>(record, name).some((one) => equal(one, id));

/** The line with a phone number. */
export function lineByPhone(db: Carrier, number: Value): Dict {
  return (
    rows(db, "lines").find((line) => equal(line.get("phone_number")!, number)) ??
    refuse(`Line with phone number ${str(number)} not found`)
  );
}

/** The customer with a phone number, own or of a line. */
export function customerByPhone(db: Carrier, number: Value): Dict {
  for (const customer of rows(db, "customers")) {
    if (equal(customer.get("phone_number")!, number)) return customer;
    for (const id of field<List>(customer, "line_ids"))
      if (equal(lineById(db, id).get("phone_number")!, number)) return customer;
  }
  return refuse(`Customer with phone number ${str(number)} not found`);
}

/** Whether a line used up its data. */
export function isExceeded(db: Carrier, line: Dict): boolean {
  const limit = arithmetic(
    "+",
    planOf(db, line).get("data_limit_gb")!,
    line.get("data_refueling_gb")!,
  );
  return less(limit, line.get("data_used_gb")!, "<=");
}

const billsOf = (db: Carrier, customer: Dict): readonly Dict[] =>
  field<List>(customer, "bill_ids").map((id) => billById(db, id));

/** The customer's bills that wait for a payment. */
export function awaitingPayment(db: Carrier, customer: Dict): readonly Dict[] {
  return billsOf(db, customer).filter((one) => one.get("status") === "Awaiting Payment");
}

/** Marks a bill as paid. */
export function payBill(db: Carrier, id: Value): void {
  billById(db, id).set("status", "Paid");
}

const targetLine = (db: Carrier, customerId: Value, lineId: Value): Dict => {
  if (!has(customerById(db, customerId), "line_ids", lineId))
    refuse(`Line ${str(lineId)} not found for customer ${str(customerId)}`);
  return lineById(db, lineId);
};

function addBill(
  db: Carrier,
  customer: Dict,
  id: Value,
  dates: Readonly<Record<string, string>>,
  status: string,
): Dict {
  const values = { bill_id: id, customer_id: customer.get("customer_id")!, ...dates };
  const made = build(bill, dict({ ...values, total_due: 0n, status }));
  rows(db, "bills").push(made);
  field<List>(customer, "bill_ids").push(id);
  return made;
}

function addItem(to: Dict, description: string, amount: bigint | number, type: string): void {
  const values = dict({ description, amount, date: TODAY, item_type: type });
  field<List>(to, "line_items").push(build(lineItem, values));
  to.set("total_due", arithmetic("+", to.get("total_due")!, amount));
}

const detailsById: Run = (db, id) => {
  if (typeof id !== "string") throw noAttribute(id!, "startswith");
  switch (id[0]) {
    case "L":
      return lineById(db, id);
    case "D":
      return byId(db, "devices", "device_id", id, "Device");
    case "B":
      return billById(db, id);
    case "C":
      return customerById(db, id);
    case "P":
      return byId(db, "plans", "plan_id", id, "Plan");
    default:
      return refuse(`Unknown ID format or type: ${id}`);
  }
};

const suspend: Run = (db, customerId, lineId) => {
  const line = targetLine(db, customerId!, lineId!);
  if (line.get("status") !== "Active") refuse("Line must be active to suspend");
  line.set("status", "Suspended").set("suspension_start_date", TODAY);
  const message = "Line suspended successfully. $5/month holding fee will apply.";
  return { loose: dict({ message, line }) };
};

const resume: Run = (db, customerId, lineId) => {
  const line = targetLine(db, customerId!, lineId!);
  if (!["Suspended", "Pending Activation"].includes(line.get("status") as string))
    refuse("Line must be suspended to resume");
  line.set("status", "Active").set("suspension_start_date", null);
  return { loose: dict({ message: "Line resumed successfully", line }) };
};

const bills: Run = (db, customerId, limit) => {
  const found = [...billsOf(db, customerById(db, customerId!))];
  const issued = (one: Dict): string => field<string>(one, "issue_date");
  found.sort((a, b) => (issued(a) < issued(b) ? 1 : issued(a) > issued(b) ? -1 : 0));
  if (limit !== null && typeof limit !== "bigint" && typeof limit !== "boolean")
    throw new PyError(
      "TypeError",
      "slice indices must be integers or None or have an __index__ method",
    );
  return limit === null ? found : found.slice(0, Number(limit));
};

const requestPayment: Run = (db, customerId, billId) => {
  const customer = customerById(db, customerId!);
  if (awaitingPayment(db, customer).length > 0)
    refuse("A bill is already awaiting payment for this customer");
  if (!has(customer, "bill_ids", billId!))
    refuse(`Bill ${str(billId!)} not found for customer ${str(customerId!)}`);
  billById(db, billId!).set("status", "Awaiting Payment");
  return `Payment request sent to the customer for bill ${str(billId!)}`;
};

const roaming =
  (on: boolean): Run =>
  (db, customerId, lineId) => {
    const line = targetLine(db, customerId!, lineId!);
    const word = on ? "enabled" : "disabled";
    if (truthy(line.get("roaming_enabled")!) === on) return `Roaming was already ${word}`;
    line.set("roaming_enabled", on);
    return `Roaming ${word} successfully`;
  };

const refuel: Run = (db, customerId, lineId, amount) => {
  const line = targetLine(db, customerId!, lineId!);
  if (less(amount!, 0n, "<=")) refuse("Refuel amount must be positive");
  const price = field<number>(planOf(db, line), "data_refueling_price_per_gb");
  const charge = arithmetic("*", amount!, price);
  line.set("data_refueling_gb", arithmetic("+", line.get("data_refueling_gb")!, amount!));
  const customer = customerById(db, customerId!);
  const draft =
    billsOf(db, customer).find((one) => one.get("status") === "Draft") ??
    addBill(db, customer, `B${(db.bills++).toString(16).padStart(8, "0")}`, NEXT_BILL, "Draft");
  const description = `Data refueling: ${str(amount!)} GB at $${str(price)}/GB`;
  addItem(draft, description, charge, less(charge, 0n) ? "Credit" : "Charge");
  return {
    loose: dict({
      message: `Successfully added ${str(amount!)} GB of data for line ${str(lineId!)} for $${fixed2(Number(charge))}`,
      new_data_refueling_gb: line.get("data_refueling_gb")!,
      charge,
    }),
  };
};

const suspendUnpaid: Run = (db, customerId, lineId, billId, ended) => {
  const line = lineById(db, lineId!);
  if (line.get("status") !== "Active") refuse("Line must be active to suspend for unpaid bill");
  const amount = field<number>(planOf(db, line), "price_per_month");
  if (amount <= 0) refuse("Amount must be positive for overdue bill");
  const customer = customerById(db, customerId!);
  if (billsOf(db, customer).some((one) => one.get("status") === "Overdue"))
    refuse("Customer already has an overdue bill");
  const overdue = addBill(db, customer, billId!, LAST_BILL, "Overdue");
  addItem(overdue, `Charge for line ${str(lineId!)}`, amount, "Charge");
  line.set("status", "Suspended").set("suspension_start_date", TODAY);
  if (truthy(ended!)) line.set("contract_end_date", LAST_BILL.period_end);
  return `Line ${str(lineId!)} suspended for unpaid bill ${str(billId!)}. Contract ended: ${str(ended!)}`;
};

const isNear = (a: Value, b: Value): boolean => {
  const difference = arithmetic("-", a, b);
  return isNumber(difference) && Math.abs(Number(difference)) < 1e-6;
};

const isPaidOrGone: Run = (db, id) => {
  const found = rows(db, "bills").find((one) => equal(one.get("bill_id")!, id!));
  return found === undefined || found.get("status") === "Paid";
};

const overdueExists: Run = (db, customerId, id) => {
  if (!has(customerById(db, customerId!), "bill_ids", id!))
    refuse(`Overdue bill ${str(id!)} not found`);
  if (billById(db, id!).get("status") !== "Overdue")
    refuse(`Overdue bill ${str(id!)} is not overdue`);
  return true;
};

const LINE = "customer_id line_id";

const tools: Readonly<Record<string, ToolDefinition<Carrier>>> = {
  get_customer_by_phone: tool("read", "phone_number", (db, number) => customerByPhone(db, number!)),
  get_customer_by_id: tool("read", "customer_id", (db, id) => customerById(db, id!)),
  get_customer_by_name: tool("read", "full_name dob", (db, name, dob) =>
    rows(db, "customers").filter(
      (one) =>
        field<string>(one, "full_name").toLowerCase() === lower(name!) &&
        equal(one.get("date_of_birth")!, dob!),
    ),
  ),
  get_details_by_id: tool("read", "id", detailsById),
  suspend_line: tool("write", `${LINE} reason`, suspend),
  resume_line: tool("write", LINE, resume),
  get_bills_for_customer: tool("read", "customer_id limit=12", bills),
  send_payment_request: tool("write", "customer_id bill_id", requestPayment),
  get_data_usage: tool("read", LINE, (db, customerId, lineId) => {
    const line = targetLine(db, customerId!, lineId!);
    return {
      loose: dict({
        line_id: lineId!,
        data_used_gb: line.get("data_used_gb")!,
        data_limit_gb: planOf(db, line).get("data_limit_gb")!,
        data_refueling_gb: line.get("data_refueling_gb")!,
        cycle_end_date: CYCLE_END,
      }),
    };
  }),
  set_data_usage: tool("hidden", `${LINE} data_used_gb`, (db, customerId, lineId, used) => {
    targetLine(db, customerId!, lineId!).set("data_used_gb", used!);
    return `Data usage set to ${str(used!)} GB for line ${str(lineId!)}`;
  }),
  enable_roaming: tool("write", LINE, roaming(true)),
  disable_roaming: tool("write", LINE, roaming(false)),
  transfer_to_human_agents: tool("generic", "summary", () => "Transfer successful"),
  refuel_data: tool("write", `${LINE} gb_amount`, refuel),
  suspend_line_for_overdue_bill: tool(
    "hidden",
    `${LINE} new_bill_id contract_ended`,
    suspendUnpaid,
  ),
  assert_data_refueling_amount: tool(
    "hidden",
    `${LINE} expected_amount`,
    (db, customerId, lineId, expected) =>
      isNear(targetLine(db, customerId!, lineId!).get("data_refueling_gb")!, expected!),
  ),
  assert_line_status: tool(
    "hidden",
    `${LINE} expected_status`,
    (db, customerId, lineId, expected) =>
      equal(targetLine(db, customerId!, lineId!).get("status")!, expected!),
  ),
  assert_overdue_bill_exists: tool("hidden", "customer_id overdue_bill_id", overdueExists),
  assert_no_overdue_bill: tool("hidden", "overdue_bill_id", isPaidOrGone),
};

/** What the agent can do. */
export const telecomAgent: Toolkit<Carrier> = methodsOf("TelecomTools", tools);

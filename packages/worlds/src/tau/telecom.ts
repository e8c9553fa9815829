/** τ²'s telecom domain: the carrier's database and the user's phone, kept in step. */
import { build } from "./model.js";
import type { Phone } from "./phone.js";
import {
  awaitingPayment,
  type Carrier,
  customerByPhone,
  isExceeded,
  lineByPhone,
  payBill,
  telecomAgent,
} from "./telecom-agent.js";
import { paymentRequest } from "./telecom-models.js";
import { telecomUser } from "./telecom-user.js";
import { dict, isDict, truthy } from "./value.js";
import type { Domain } from "./world.js";

/** The rules of the domain. */
export const telecom: Domain<Carrier, Phone> = {
  name: "tau2-telecom",
  edition: 2,
  agent: telecomAgent,
  user: telecomUser,
  sync,
};

/** What the carrier changed reaches the phone, and payments reach the carrier. */
function sync(carrier: Carrier, { around }: Phone): void {
  const number = around.get("phone_number")!;
  if (number === null) return;
  const line = lineByPhone(carrier, number);
  around.set("line_active", line.get("status") === "Active");
  around.set("roaming_allowed", truthy(line.get("roaming_enabled")!));
  around.set("mobile_data_usage_exceeded", isExceeded(carrier, line));
  const request = around.get("payment_request")!;
  if (isDict(request) && truthy(request.get("paid")!)) {
    payBill(carrier, request.get("bill_id")!);
    around.set("payment_request", null);
  }
  if (around.get("payment_request") !== null) return;
  const bill = awaitingPayment(carrier, customerByPhone(carrier, number))[0];
  if (bill === undefined) return;
  const values = dict({ bill_id: bill.get("bill_id")!, amount_due: bill.get("total_due")! });
  around.set("payment_request", build(paymentRequest, values));
}

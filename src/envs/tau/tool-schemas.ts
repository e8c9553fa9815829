/**
 * The tools as a model is told about them, in our own words. What a parameter is depends on its
 * name; where a name means two things, the table says for which tool.
 */

import type { Tool } from "../../text/tool.js";
import { EnvError } from "../env.js";
import { descriptions } from "./tool-descriptions.js";
import type { ToolDefinition } from "./toolkit.js";

type Schema = Readonly<Record<string, unknown>>;

const text = (description: string): Schema => ({ type: "string", description });
const choice = (...names: readonly string[]): Schema => ({ type: "string", enum: names });
const number = (description: string): Schema => ({ type: "number", description });
const count = (description: string): Schema => ({ type: "integer", description });
const texts = (description: string): Schema => ({
  type: "array",
  items: { type: "string" },
  description,
});
const records = (description: string, properties: Readonly<Record<string, Schema>>): Schema => ({
  type: "array",
  description,
  items: { type: "object", properties, required: Object.keys(properties) },
});

const parameters: Readonly<Record<string, Schema>> = {
  address1: text("First line of the address."),
  address2: text("Second line of the address; may be empty."),
  amount: number("Amount in dollars."),
  apn_settings: {
    type: "object",
    description: "The new settings; what is left out gets its default.",
    properties: {
      apn_name: choice("internet", "broken"),
      reset_at_reboot: { type: "boolean" },
      mms_apn: { type: ["string", "null"] },
      mmsc_url: { type: ["string", "null"] },
      mms_proxy: { type: ["string", "null"] },
      mms_port: { type: ["integer", "null"] },
    },
  },
  app_name: text("Name of the app, such as messaging."),
  bill_id: text("Id of the bill."),
  cabin: choice("basic_economy", "economy", "business"),
  city: text("City."),
  content: text("What to say to the user."),
  country: text("Country, such as USA."),
  customer_id: text("Id of the customer, such as C1001."),
  date: text("Day of the flight, YYYY-MM-DD."),
  description: { type: ["string", "null"], description: "More about the task." },
  destination: text("Airport of arrival, three letters."),
  dob: text("Date of birth, YYYY-MM-DD."),
  email: text("E-mail address."),
  expression: text("Numbers with + - * / and parentheses."),
  first_name: text("First name."),
  flight_type: choice("one_way", "round_trip"),
  flights: records("All flights of the reservation, in order.", {
    flight_number: text("Number of the flight, such as HAT001."),
    date: text("Day of the flight, YYYY-MM-DD."),
  }),
  full_name: text("First and last name."),
  gb_amount: number("Gigabytes to add."),
  id: text("Id of a customer, line, device, bill or plan."),
  insurance: choice("yes", "no"),
  item_id: text("Id of an item: one variant of a product."),
  item_ids: texts("Ids of the items; an id may occur more than once."),
  last_name: text("Last name."),
  limit: count("The most bills to list (default: 12)."),
  line_id: text("Id of the line, such as L1001."),
  mode: choice("4g_5g_preferred", "4g_only", "3g_only", "2g_only"),
  new_item_ids: texts("Ids of the new items, each for the item at the same place."),
  nonfree_baggages: count("Bags that are paid for."),
  notification_id: text("Id of the notification."),
  order_id: text("Id of the order, with its #, such as #W0000000."),
  origin: text("Airport of departure, three letters."),
  passengers: records("All passengers.", {
    first_name: text("First name."),
    last_name: text("Last name."),
    dob: text("Date of birth, YYYY-MM-DD."),
  }),
  payment_id: text("Id of a payment method of the user's profile."),
  payment_method_id: text("Id of a payment method of the user's profile."),
  payment_methods: records("How the price is paid; the amounts add up to it.", {
    payment_id: text("Id of a payment method of the user's profile."),
    amount: number("Amount in dollars."),
  }),
  permission: text("The permission, in lower case, such as storage."),
  phone_number: text("Phone number."),
  product_id: text("Id of a product, which is not that of an item."),
  reason: text("Why the line is suspended."),
  "cancel_pending_order.reason": choice("no longer needed", "ordered by mistake"),
  reservation_id: text("Id of the reservation, such as ZFA04Y."),
  state: text("State, such as CA."),
  status: choice("pending", "completed"),
  summary: text("What the user needs, in short."),
  task_id: text("Id of the task."),
  thought: text("The thought."),
  title: text("Title of the task."),
  total_baggages: count("All bags, free ones included."),
  user_id: text("Id of the user."),
  zip: text("Zip code."),
};

/** A tool with its schema. */
export function toolSchema(
  name: string,
  definition: Pick<ToolDefinition<never>, "parameters">,
): Tool {
  const description = descriptions[name];
  if (description === undefined) throw new EnvError(`tau: the tool ${name} has no description`);
  const entries = definition.parameters.map((one) => {
    const parameter = one.split("=")[0]!;
    const schema = parameters[`${name}.${parameter}`] ?? parameters[parameter];
    if (schema === undefined) throw new EnvError(`tau: ${name}: no schema for ${parameter}`);
    return [parameter, schema] as const;
  });
  return {
    name,
    description,
    parameters: {
      type: "object",
      properties: Object.fromEntries(entries),
      required: definition.parameters.filter((one) => !one.includes("=")),
    },
  };
}

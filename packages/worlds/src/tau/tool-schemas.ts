/**
 * The tools as a model is told about them, in our own words. What a parameter is depends on its
 * name; where a name means two things, the table says for which tool.
 */

import { EnvError } from "@pawl/core/envs/env.js";
import type { Tool } from "@pawl/core/text/tool.js";
import type { ToolDefinition } from "./world.js";

/** What each tool does, in our own words. */

/** Descriptions by the tool's name. */
const descriptions: Readonly<Record<string, string>> = {
  // Of every domain.
  respond: "Say something to the user. The answer is the user's next message.",
  done: "End the case: everything that can be done is done.",
  calculate: "Evaluate an arithmetic expression, rounded to two digits.",
  think: "Write down a thought. Nothing happens.",
  transfer_to_human_agents:
    "Hand the user over to a human agent. Only if asked to, or if the policy and the tools do not allow what is needed.",
  // The shop.
  cancel_pending_order:
    "Cancel a pending order and refund its payments. Ask the user to confirm first.",
  exchange_delivered_order_items:
    "Exchange items of a delivered order for other variants of the same products, once per order. Ask the user to confirm first.",
  find_user_id_by_email: "Find a user's id by e-mail address.",
  find_user_id_by_name_zip:
    "Find a user's id by name and zip code, if the e-mail address does not help.",
  get_item_details: "Show one variant of a product: options, price and whether it is available.",
  get_order_details: "Show an order: items, status, address and payments.",
  get_product_details: "Show a product with all its variants.",
  get_user_details:
    "Show a user's profile: name, address, payment methods and what belongs to the user.",
  list_all_product_types: "List the products of the shop with their ids.",
  modify_pending_order_address:
    "Change the address that a pending order goes to. Ask the user to confirm first.",
  modify_pending_order_items:
    "Change items of a pending order to other variants of the same products, once per order. Ask the user to confirm first.",
  modify_pending_order_payment:
    "Change the payment method of a pending order. Ask the user to confirm first.",
  modify_user_address: "Change the address in a user's profile. Ask the user to confirm first.",
  return_delivered_order_items: "Return items of a delivered order. Ask the user to confirm first.",
  // The airline.
  book_reservation: "Book a reservation and pay for it.",
  cancel_reservation: "Cancel a whole reservation.",
  get_reservation_details: "Show a reservation: flights, passengers, payments and bags.",
  list_all_airports: "List the airports with their cities.",
  search_direct_flight: "Find flights without a stop on a day.",
  search_onestop_flight: "Find connections with one stop on a day.",
  send_certificate: "Give a user a travel certificate.",
  update_reservation_baggages: "Change the bags of a reservation.",
  update_reservation_flights: "Change the flights or the cabin of a reservation.",
  update_reservation_passengers: "Change the passengers of a reservation, but not their number.",
  // The carrier.
  get_customer_by_phone: "Find a customer by phone number.",
  get_customer_by_id: "Show a customer.",
  get_customer_by_name: "Find customers by name and date of birth.",
  get_details_by_id: "Show a customer, line, device, bill or plan by its id.",
  suspend_line: "Suspend an active line, for at most six months.",
  resume_line: "Resume a suspended line.",
  get_bills_for_customer: "List a customer's bills, the newest first.",
  send_payment_request:
    "Ask the customer to pay a bill. Only one bill at a time can await its payment; whether it was paid already is not checked.",
  get_data_usage: "Show how much data a line used in this billing cycle.",
  enable_roaming: "Allow a line to be used abroad.",
  disable_roaming: "Forbid a line to be used abroad.",
  refuel_data: "Add data to a line; the customer's next bill is charged for it.",
  // The phone.
  check_status_bar: "Look at the icons at the top of the phone's screen.",
  check_network_status: "Look at the phone's connections: cellular, mobile data, roaming, Wi-Fi.",
  check_network_mode_preference: "Look which kind of network the phone prefers.",
  set_network_mode_preference: "Choose which kind of network the phone prefers.",
  run_speed_test: "Measure the speed of mobile data.",
  toggle_airplane_mode: "Switch airplane mode on or off.",
  check_sim_status: "Look whether the SIM card works.",
  reseat_sim_card: "Take the SIM card out and put it back.",
  toggle_data: "Switch mobile data on or off.",
  toggle_roaming: "Switch data roaming on or off.",
  check_data_restriction_status: "Look whether data saver mode is on.",
  toggle_data_saver_mode: "Switch data saver mode on or off.",
  check_apn_settings: "Look at the settings for mobile data and picture messages.",
  set_apn_settings: "Set the settings for mobile data and picture messages.",
  reset_apn_settings: "Reset the settings for mobile data at the next restart.",
  check_wifi_status: "Look at the Wi-Fi connection.",
  toggle_wifi: "Switch Wi-Fi on or off.",
  check_wifi_calling_status: "Look whether Wi-Fi calling is on.",
  toggle_wifi_calling: "Switch Wi-Fi calling on or off.",
  check_vpn_status: "Look whether a VPN is connected.",
  connect_vpn: "Connect to the VPN.",
  disconnect_vpn: "Disconnect from the VPN.",
  check_installed_apps: "List the phone's apps.",
  check_app_status: "Look at an app's state.",
  check_app_permissions: "Look what an app is allowed to do.",
  grant_app_permission: "Give an app a permission.",
  can_send_mms: "Try whether picture messages can be sent.",
  reboot_device: "Restart the phone.",
  check_payment_request: "Look whether there is a request to pay a bill.",
  make_payment: "Pay the bill of the payment request.",
  // The mock domain.
  create_task: "Make a new task for a user.",
  get_users: "List the users with their tasks.",
  update_task_status: "Change the status of a task.",
  check_notifications: "Look at the notifications.",
  dismiss_notification: "Dismiss a notification.",
};

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

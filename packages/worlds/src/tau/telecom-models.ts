/** The records of τ²'s telecom domain: the carrier's database and the user's phone. */
import type { Kind, Model } from "./model.js";
import { type Dict, dict } from "./value.js";

const record = (name: string, fields: Model["fields"]): Model => ({
  name,
  extra: "refuse",
  fields,
});
const optional = (kind: Kind): Kind => ({ optional: kind });
const oneOf = (...names: readonly string[]): Kind => ({ oneOf: names });
const texts: Kind = { list: "str" };

const address = record("Address", [
  ["street", "str"],
  ["city", "str"],
  ["state", "str"],
  ["zip_code", "str"],
]);

const plan = record("Plan", [
  ["plan_id", "str"],
  ["name", "str"],
  ["data_limit_gb", "float"],
  ["price_per_month", "float"],
  ["data_refueling_price_per_gb", "float"],
]);

const device = record("Device", [
  ["device_id", "str"],
  ["device_type", oneOf("phone", "router", "tablet", "watch", "other")],
  ["model", "str"],
  ["imei", optional("str"), null],
  ["is_esim_capable", "bool"],
  ["activated", "bool", false],
  ["activation_date", optional("datetime"), null],
  ["last_esim_transfer_date", optional("datetime"), null],
]);

const line = record("Line", [
  ["line_id", "str"],
  ["phone_number", "str"],
  ["status", oneOf("Active", "Suspended", "Pending Activation", "Closed"), "Pending Activation"],
  ["plan_id", "str"],
  ["device_id", optional("str"), null],
  ["data_used_gb", "float", 0],
  ["data_refueling_gb", "float", 0],
  ["roaming_enabled", "bool", false],
  ["contract_end_date", optional("date"), null],
  ["last_plan_change_date", optional("date"), null],
  ["last_sim_replacement_date", optional("date"), null],
  ["suspension_start_date", optional("date"), null],
]);

/** A charge or credit on a bill. */
export const lineItem = record("LineItem", [
  ["description", "str"],
  ["amount", "float"],
  ["date", "date"],
  ["item_type", "str"],
]);

/** A bill. */
export const bill = record("Bill", [
  ["bill_id", "str"],
  ["customer_id", "str"],
  ["period_start", "date"],
  ["period_end", "date"],
  ["issue_date", "date"],
  ["total_due", "float"],
  ["due_date", "date"],
  ["line_items", { list: lineItem }, []],
  ["status", oneOf("Draft", "Issued", "Awaiting Payment", "Paid", "Overdue", "Disputed"), "Draft"],
]);

const paymentMethod = record("PaymentMethod", [
  ["method_type", oneOf("Credit Card", "Debit Card", "PayPal")],
  ["account_number_last_4", "str"],
  ["expiration_date", "str"],
]);

const customer = record("Customer", [
  ["customer_id", "str"],
  ["full_name", "str"],
  ["date_of_birth", "str"],
  ["email", "str"],
  ["phone_number", "str"],
  ["address", address],
  [
    "account_status",
    oneOf("Active", "Suspended", "Pending Verification", "Closed"),
    "Pending Verification",
  ],
  ["payment_methods", { list: paymentMethod }, []],
  ["line_ids", texts, []],
  ["bill_ids", texts, []],
  ["created_at", "datetime", "2025-01-01"],
  ["last_extension_date", optional("date"), null],
  ["goodwill_credit_used_this_year", "float", 0],
]);

/** The carrier's database. */
export const telecomDb = record("TelecomDB", [
  ["plans", { list: plan }, []],
  ["customers", { list: customer }, []],
  ["lines", { list: line }, []],
  ["bills", { list: bill }, []],
  ["devices", { list: device }, []],
]);

/** Preferences of a phone for a network. */
export const networkModes = ["4g_5g_preferred", "4g_only", "3g_only", "2g_only"] as const;

/** What the status of a network connection can be. */
export const networkStatuses = ["connected", "searching", "no_service", "emergency_only"] as const;

const strength = oneOf("none", "poor", "fair", "good", "excellent");

/** A phone's settings for mobile data. */
export const apnSettings = record("APNSettings", [
  ["apn_name", oneOf("internet", "broken"), "internet"],
  ["reset_at_reboot", "bool", false],
  ["mms_apn", optional("str"), "mms"],
  ["mmsc_url", optional("str"), "http://mms.carrier.com/mms/wapenc"],
  ["mms_proxy", optional("str"), null],
  ["mms_port", optional("int"), null],
]);

const vpnDetails = record("VpnDetails", [
  ["server_address", optional("str"), null],
  ["protocol", optional("str"), null],
  ["server_performance", oneOf("unknown", "poor", "fair", "good", "excellent"), "unknown"],
]);

const permissions = record("AppPermissions", [
  ["sms", "bool", false],
  ["storage", "bool", false],
  ["phone", "bool", false],
  ["network", "bool", false],
]);

const appStatus = record("AppStatus", [
  ["app_name", "str"],
  ["permissions", permissions],
]);

const app = (name: string, granted: readonly string[]): Dict =>
  dict({
    app_name: name,
    permissions: new Map(permissions.fields.map(([one]) => [one, granted.includes(one)])),
  });

const phone = record("MockPhoneAttributes", [
  ["sim_card_status", oneOf("active", "missing", "locked_pin", "locked_puk"), "active"],
  ["sim_card_missing", "bool", false],
  ["airplane_mode", "bool", false],
  ["network_signal_strength", strength, "good"],
  ["network_technology_connected", oneOf("none", "2G", "3G", "4G", "5G"), "5G"],
  ["network_connection_status", oneOf(...networkStatuses), "connected"],
  ["battery_level", "int", 80n],
  ["data_enabled", "bool", true],
  ["roaming_enabled", "bool", false],
  ["network_mode_preference", oneOf(...networkModes), "4g_5g_preferred"],
  ["active_apn_settings", apnSettings],
  ["wifi_enabled", "bool", false],
  ["wifi_connected", "bool", false],
  ["wifi_ssid", optional("str"), null],
  ["wifi_signal_strength", strength, "none"],
  ["wifi_calling_enabled", "bool", false],
  ["wifi_calling_mms_over_wifi", "bool", false],
  ["data_saver_mode", "bool", false],
  ["vpn_enabled_setting", "bool", false],
  ["vpn_connected", "bool", false],
  ["vpn_details", optional(vpnDetails), null],
  [
    "app_statuses",
    { dict: appStatus },
    dict({
      messaging: app("messaging", ["sms", "storage", "phone"]),
      browser: app("browser", ["network", "storage"]),
    }),
  ],
]);

/** A request to pay a bill. */
export const paymentRequest = record("PaymentRequest", [
  ["bill_id", "str"],
  ["amount_due", "float"],
  ["paid", "bool", false],
]);

const surroundings = record("UserSurroundings", [
  ["name", optional("str"), null],
  ["phone_number", optional("str"), null],
  ["is_abroad", "bool", false],
  ["roaming_allowed", "bool", false],
  [
    "signal_strength",
    { dict: strength },
    dict({ "2G": "poor", "3G": "fair", "4G": "good", "5G": "excellent" }),
  ],
  ["mobile_data_usage_exceeded", "bool", false],
  ["line_active", "bool", true],
  ["payment_request", optional(paymentRequest), null],
]);

/** The user's phone and surroundings; a file may leave the surroundings out. */
export const telecomUserDb = record("TelecomUserDB", [
  ["device", phone],
  [
    "surroundings",
    surroundings,
    new Map(surroundings.fields.map(([name, , value]) => [name, value!])),
  ],
]);

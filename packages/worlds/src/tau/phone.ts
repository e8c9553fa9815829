/** The phone of τ²'s telecom users: its state, its search for a network, and what works with it. */
import { type Database, recordDatabase } from "./database.js";
import {
  type Dict,
  dict,
  field,
  fixed2,
  isDict,
  noAttribute,
  repr,
  round2,
  str,
  truthy,
  type Value,
} from "./value.js";

// The switches of a phone, its VPN and its apps: what the user and a task's setup both act on.

export const onOff = (on: boolean): string => (on ? "ON" : "OFF");

/** Drops the Wi-Fi connection. */
export const noWifi = (phone: Phone): void => {
  phone.device.set("wifi_connected", false).set("wifi_ssid", null);
  phone.device.set("wifi_signal_strength", "none");
};

/** Switches that are toggled: the device's field, their name, and what follows. */
export interface Switch {
  readonly field: string;
  readonly label: string;
  after?(phone: Phone, on: boolean): void;
}

export const switches = {
  airplane: {
    field: "airplane_mode",
    label: "Airplane Mode",
    after(phone, on) {
      if (on || isOn(phone, "wifi_enabled")) noWifi(phone);
      if (on) disconnect(phone);
      searchNetwork(phone);
    },
  },
  data: { field: "data_enabled", label: "Mobile Data", after: searchNetwork },
  roaming: { field: "roaming_enabled", label: "Data Roaming", after: searchNetwork },
  saver: { field: "data_saver_mode", label: "Data Saver Mode" },
  calling: { field: "wifi_calling_enabled", label: "Wi-Fi Calling" },
} satisfies Record<string, Switch>;

/** Toggles a switch and says whether it is on now. */
export function flip(phone: Phone, which: Switch): boolean {
  const on = !isOn(phone, which.field);
  phone.device.set(which.field, on);
  which.after?.(phone, on);
  return on;
}

/** Disconnects the VPN, if one is connected. */
export function disconnect(phone: Phone): boolean {
  if (!isOn(phone, "vpn_connected")) return false;
  phone.device.set("vpn_connected", false).set("vpn_details", null);
  return true;
}

/** Connects to the default VPN, unless one is connected. */
export function connect(phone: Phone): boolean {
  if (isOn(phone, "vpn_connected")) return false;
  const details = dict({
    server_address: "192.168.1.1",
    protocol: "OpenVPN",
    server_performance: phone.vpnPerformance,
  });
  phone.device.set("vpn_connected", true).set("vpn_details", details);
  return true;
}

/** The apps by name. */
export const appsOf = (phone: Phone): Map<string, Dict> =>
  field<Map<string, Dict>>(phone.device, "app_statuses");

/** The user's phone and surroundings. */
export interface Phone extends Database {
  readonly root: Dict;
  readonly device: Dict;
  readonly around: Dict;
  /** How well the VPN works that is connected to by default; a broken one stays broken. */
  vpnPerformance: string;
  copy(): Phone;
}

/** A phone from its database. */
export function createPhone(root: Dict, vpnPerformance = "excellent"): Phone {
  const database = recordDatabase(root);
  return {
    root,
    device: field<Dict>(root, "device"),
    around: field<Dict>(root, "surroundings"),
    vpnPerformance,
    hash: database.hash,
    copy() {
      return createPhone(database.copy().root, this.vpnPerformance);
    },
  };
}

/** Whether a switch of the device is on. */
export const isOn = (phone: Phone, name: string): boolean => truthy(phone.device.get(name)!);

/** The settings for mobile data; the attribute is what is asked of them, should they be no record. */
export function apnOf(phone: Phone, attribute: string): Dict {
  const settings = phone.device.get("active_apn_settings")!;
  if (isDict(settings)) return settings;
  throw noAttribute(settings, attribute);
}

/** The state of the SIM card. */
export function simStatus(phone: Phone): Value {
  return isOn(phone, "sim_card_missing") ? "missing" : phone.device.get("sim_card_status")!;
}

const TECHNOLOGY: Readonly<Record<string, string>> = {
  "4g_only": "4G",
  "3g_only": "3G",
  "2g_only": "2G",
};

/** Looks for a network again: connection, technology and signal follow from the phone's state. */
export function searchNetwork(phone: Phone): void {
  const { device, around } = phone;
  const signals = field<Map<string, string>>(around, "signal_strength");
  const signalOf = (technology: string): string => signals.get(technology) ?? "none";
  const connect = (status: string, technology: string, signal: string): void => {
    device.set("network_connection_status", status);
    device.set("network_technology_connected", technology);
    device.set("network_signal_strength", signal);
  };
  const none = (): void => connect("no_service", "none", "none");
  const mode = device.get("network_mode_preference")!;
  const best = mode === "4g_5g_preferred" && signalOf("5G") !== "none" ? "5G" : "4G";
  const technology = typeof mode === "string" ? (TECHNOLOGY[mode] ?? best) : best;
  if (simStatus(phone) === "active") connect("connected", technology, signalOf(technology));
  else none();
  if (isOn(phone, "airplane_mode")) none();
  // In this order: settings that are no record raise here, and what was set before stays.
  if (apnOf(phone, "apn_name").get("apn_name") === "broken") none();
  if (!truthy(around.get("line_active")!)) none();
}

/** Whether mobile data works. */
export function dataWorks(phone: Phone): boolean {
  const { device, around } = phone;
  const abroad = truthy(around.get("is_abroad")!);
  return (
    !isOn(phone, "airplane_mode") &&
    device.get("network_signal_strength") !== "none" &&
    device.get("network_connection_status") !== "no_service" &&
    !(abroad && !(isOn(phone, "roaming_enabled") && truthy(around.get("roaming_allowed")!))) &&
    isOn(phone, "data_enabled") &&
    !truthy(around.get("mobile_data_usage_exceeded")!)
  );
}

/** Whether picture messages can be sent. */
export function mmsWorks(phone: Phone): boolean {
  const { device } = phone;
  if (!dataWorks(phone) || device.get("network_technology_connected") === "2G") return false;
  if (isOn(phone, "wifi_calling_enabled") && isOn(phone, "wifi_calling_mms_over_wifi"))
    return false;
  if (apnOf(phone, "mmsc_url").get("mmsc_url") === null) return false;
  const app = field<Map<string, Dict>>(device, "app_statuses").get("messaging");
  if (app === undefined) return false;
  const granted = field<Dict>(app, "permissions");
  return truthy(granted.get("storage")!) && truthy(granted.get("sms")!);
}

const RANGES: Readonly<Record<string, readonly [number, number]>> = {
  "2G": [0.1, 0.4],
  "3G": [1, 5],
  "4G": [10, 100],
  "5G": [50, 500],
};
const FACTORS: Readonly<Record<string, number>> = { poor: 0.2, fair: 0.5, good: 0.8, excellent: 1 };
const GRADES = [
  [1, "Very Poor", "Connection is very slow. Basic web browsing might be difficult."],
  [5, "Poor", "Connection is slow. Web browsing may be sluggish, streaming difficult."],
  [25, "Fair", "Connection is okay for web browsing and some standard definition streaming."],
  [100, "Good", "Connection is good for most activities, including HD streaming."],
  [Number.POSITIVE_INFINITY, "Excellent", "Connection is very fast."],
] as const;

/** What a speed test measures: megabits a second, none without a connection, and a grade. */
export function speedTest(phone: Phone): {
  readonly speed: number | null;
  readonly grade: string;
  readonly text: string;
} {
  if (!dataWorks(phone))
    return { speed: null, grade: "No Connection", text: "Speed test failed: No Connection." };
  const { device } = phone;
  const vpn = device.get("vpn_details");
  const slowed =
    isOn(phone, "vpn_connected") && vpn instanceof Map && vpn.get("server_performance") === "poor";
  const saved = (slowed ? 0.1 : 1) * (isOn(phone, "data_saver_mode") ? 0.2 : 1);
  const [low, high] = RANGES[str(device.get("network_technology_connected")!)] ?? [0, 0];
  const factor = FACTORS[str(device.get("network_signal_strength")!)] ?? 0;
  const speed = Number(round2(((low + high) / 2) * factor * saved));
  const [, grade, advice] = GRADES.find(([below]) => speed < below)!;
  return { speed, grade, text: `Speed Test Result: ${fixed2(speed)} Mbps (${grade}). ${advice}` };
}

const SIGNALS: Readonly<Record<string, string>> = {
  none: "📵 No Signal",
  poor: "📶¹ Poor",
  fair: "📶² Fair",
  good: "📶³ Good",
  excellent: "📶⁴ Excellent",
};

/** The icons at the top of the screen. */
export function statusBar(phone: Phone): string {
  const { device } = phone;
  const icons: string[] = [];
  if (isOn(phone, "airplane_mode")) icons.push("✈️ Airplane Mode");
  else {
    icons.push(SIGNALS[str(device.get("network_signal_strength")!)] ?? SIGNALS.none!);
    const technology = str(device.get("network_technology_connected")!);
    if (technology !== "none") icons.push(technology);
    if (isOn(phone, "data_enabled") && technology !== "none") {
      icons.push("📱 Data Enabled");
      if (isOn(phone, "data_saver_mode")) icons.push("🔽 Data Saver");
    } else icons.push("📵 Data Disabled");
  }
  if (isOn(phone, "wifi_enabled") && isOn(phone, "wifi_connected")) {
    const ssid = device.get("wifi_ssid")!;
    icons.push(truthy(ssid) ? `📡 Connected to ${str(ssid)}` : "📡 Enabled");
  }
  if (isOn(phone, "vpn_connected")) icons.push("🔒 VPN Connected");
  icons.push(`🔋 ${repr(device.get("battery_level")!)}%`);
  return icons.join(" | ");
}

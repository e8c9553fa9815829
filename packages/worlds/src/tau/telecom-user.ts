/** What the user of τ²'s telecom domain can do with the phone. */
import { build } from "./model.js";
import {
  apnOf,
  appsOf,
  connect,
  disconnect,
  flip,
  isOn,
  mmsWorks,
  noWifi,
  onOff,
  type Phone,
  type Switch,
  searchNetwork,
  simStatus,
  speedTest,
  statusBar,
  switches,
} from "./phone.js";
import { apnSettings, networkModes } from "./telecom-models.js";
import { assertions, setups } from "./telecom-setup.js";
import {
  type Dict,
  field,
  isDict,
  lookUp,
  lower,
  noAttribute,
  repr,
  str,
  truthy,
  type Value,
} from "./value.js";
import { type Answer, methodsOf, type ToolDefinition, type Toolkit, tool } from "./world.js";

type Run = (phone: Phone, ...values: Value[]) => Answer;
type Tools = Readonly<Record<string, ToolDefinition<Phone>>>;

const yesNo = (on: boolean): string => (on ? "Yes" : "No");
const withBar = (phone: Phone, text: string): string => `${text}\nStatus Bar: ${statusBar(phone)}`;

/** `value.value` of what should be a member of an enumeration. */
const memberOf = (value: Value): string => {
  if (typeof value !== "string") throw noAttribute(value, "value");
  return value;
};

/** A tool that toggles a switch. */
const toggle = (which: Switch): ToolDefinition<Phone> =>
  tool("write", "", (phone) =>
    withBar(phone, `${which.label} is now ${onOff(flip(phone, which))}.`),
  );

const networkStatus: Run = (phone) => {
  const { device } = phone;
  const text = (name: string): string => memberOf(device.get(name)!);
  const lines = [
    `Airplane Mode: ${onOff(isOn(phone, "airplane_mode"))}`,
    `SIM Card Status: ${memberOf(simStatus(phone))}`,
    `Cellular Connection: ${text("network_connection_status")}`,
    `Cellular Signal: ${text("network_signal_strength")}`,
    `Cellular Network Type: ${text("network_technology_connected")}`,
    `Mobile Data Enabled: ${yesNo(isOn(phone, "data_enabled"))}`,
    `Data Roaming Enabled: ${yesNo(isOn(phone, "roaming_enabled"))}`,
    `Wi-Fi Radio: ${onOff(isOn(phone, "wifi_enabled"))}`,
    `Wi-Fi Connected: ${yesNo(isOn(phone, "wifi_connected"))}`,
  ];
  if (isOn(phone, "wifi_connected"))
    lines.push(`Connected Wi-Fi Network: ${str(device.get("wifi_ssid")!)}`);
  return lines.join("\n");
};

const setMode: Run = (phone, mode) => {
  const known = typeof mode !== "string" || (networkModes as readonly string[]).includes(mode);
  if (known) {
    phone.device.set("network_mode_preference", mode!);
    searchNetwork(phone);
  }
  // None is stored and then taken for a failure, as in the original.
  if (!known || mode === null)
    return withBar(
      phone,
      `Failed to set network mode: '${str(mode!)}' is not a valid option. Please use one of: ${networkModes.join(", ")}`,
    );
  return withBar(phone, `Preferred Network Mode set to: ${memberOf(mode!)}`);
};

const SIM_TEXTS: Readonly<Record<string, string>> = {
  active: "Your SIM card is active and working.",
  missing: "No SIM card detected in the phone.",
  locked_pin: "The SIM card is locked with a PIN code.",
  locked_puk: "The SIM card is locked with a PUK code.",
};

const setApn: Run = (phone, given) => {
  const settings = isDict(given!) ? build(apnSettings, given) : given!;
  phone.device.set("active_apn_settings", settings);
  if (!isDict(settings)) throw noAttribute(settings, "apn_name");
  const text = `APN settings set to: ${memberOf(settings.get("apn_name")!)}`;
  searchNetwork(phone);
  return withBar(phone, text);
};

const wifiStatus: Run = (phone) => {
  if (!isOn(phone, "wifi_enabled")) return "Wi-Fi is turned OFF.";
  if (!isOn(phone, "wifi_connected")) return "Wi-Fi is ON but not connected to any network.";
  const { device } = phone;
  return `Wi-Fi is ON and connected to '${str(device.get("wifi_ssid")!)}'. Signal strength: ${memberOf(device.get("wifi_signal_strength")!)}.`;
};

const toggleWifi: Run = (phone) => {
  if (isOn(phone, "airplane_mode"))
    return withBar(phone, "Cannot change Wi-Fi settings while Airplane Mode is ON.");
  const on = !isOn(phone, "wifi_enabled");
  phone.device.set("wifi_enabled", on);
  if (!on) noWifi(phone);
  return withBar(phone, `Wi-Fi is now ${onOff(on)}.`);
};

const vpnStatus: Run = (phone) => {
  const details = phone.device.get("vpn_details")!;
  if (!isOn(phone, "vpn_connected"))
    return isOn(phone, "vpn_enabled_setting")
      ? "VPN is turned ON in settings, but currently not connected."
      : "VPN is turned OFF.";
  if (!isDict(details)) return "VPN is ON and connected (no specific details available).";
  const level = field<string>(details, "server_performance");
  const parts = [...details].map(([name, value]) =>
    name === "server_performance"
      ? `'${name}': <PerformanceLevel.${level.toUpperCase()}: '${level}'>`
      : `'${name}': ${repr(value)}`,
  );
  return `VPN is ON and connected. Details: {${parts.join(", ")}}`;
};

const grantedOf = (app: Dict): readonly string[] =>
  [...field<Dict>(app, "permissions")]
    .filter(([, granted]) => truthy(granted))
    .map(([name]) => name.replaceAll("_", " ").toLowerCase());

const appStatus: Run = (phone, name) => {
  const app = lookUp(appsOf(phone), name!);
  if (app === undefined) return `App '${str(name!)}' not found on this phone.`;
  const granted = grantedOf(app);
  const lines =
    granted.length === 0
      ? [" - Permissions: None granted."]
      : [" - Permissions Granted:", ...granted.map((one) => `   - ${one}`)];
  return [`Status for App: ${str(name!)}`, ...lines].join("\n");
};

const appPermissions: Run = (phone, name) => {
  const app = lookUp(appsOf(phone), name!);
  if (app === undefined) return `App '${str(name!)}' not found on this phone.`;
  const granted = grantedOf(app);
  return granted.length === 0
    ? `App '${str(name!)}' currently has no permissions granted.`
    : `App '${str(name!)}' has permission for: ${granted.join(", ")}.`;
};

const grant: Run = (phone, name, wanted) => {
  const app = lookUp(appsOf(phone), name!);
  const permission = lower(wanted!);
  if (app === undefined)
    return withBar(phone, `Error. App '${str(name!)}' not found. Cannot grant permission.`);
  const known = field<Dict>(app, "permissions");
  if (!known.has(permission))
    return withBar(
      phone,
      `Error. Permission '${permission}' not tracked for app '${str(name!)}', available permissions: ${repr([...known.keys()])}`,
    );
  known.set(permission, true);
  return withBar(phone, `Success. Permission '${permission}' granted to app '${str(name!)}'.`);
};

const reboot: Run = (phone) => {
  const lines = ["Restarting network services..."];
  if (truthy(apnOf(phone, "reset_at_reboot").get("reset_at_reboot")!)) {
    lines.unshift("Resetting APN settings...");
    phone.device.set("active_apn_settings", build(apnSettings, new Map()));
  }
  searchNetwork(phone);
  return withBar(phone, lines.join("\n"));
};

const requestOf = (phone: Phone): Dict | undefined => {
  const request = phone.around.get("payment_request")!;
  return isDict(request) ? request : undefined;
};

const checkRequest: Run = (phone) => {
  const request = requestOf(phone);
  return request === undefined
    ? "No payment request has been made."
    : `You have a payment request for bill ${str(request.get("bill_id")!)} of ${str(request.get("amount_due")!)} USD.`;
};

const pay: Run = (phone) => {
  const request = requestOf(phone);
  if (request === undefined) return "You do not have a payment request.";
  request.set("paid", true);
  return `Payment of ${str(request.get("amount_due")!)} USD has been made for bill ${str(request.get("bill_id")!)}.`;
};

/** The tools, in the order in which they are offered. */
const tools: Tools = {
  check_status_bar: tool("read", "", (phone) => `Status Bar: ${statusBar(phone)}`),
  check_network_status: tool("read", "", networkStatus),
  check_network_mode_preference: tool(
    "read",
    "",
    (phone) => `Network Mode Preference: ${memberOf(phone.device.get("network_mode_preference")!)}`,
  ),
  set_network_mode_preference: tool("write", "mode", setMode),
  run_speed_test: tool("read", "", (phone) => speedTest(phone).text),
  toggle_airplane_mode: toggle(switches.airplane),
  check_sim_status: tool("read", "", (phone) => SIM_TEXTS[str(simStatus(phone))]!),
  reseat_sim_card: tool("write", "", (phone) => {
    phone.device.set("sim_card_missing", false);
    searchNetwork(phone);
    return withBar(phone, "SIM card re-seated successfully.");
  }),
  toggle_data: toggle(switches.data),
  toggle_roaming: toggle(switches.roaming),
  check_data_restriction_status: tool("read", "", (phone) =>
    isOn(phone, "data_saver_mode")
      ? "Data Saver mode is ON (limits data usage)."
      : "Data Saver mode is OFF.",
  ),
  toggle_data_saver_mode: toggle(switches.saver),
  check_apn_settings: tool("read", "", (phone) => {
    const settings = apnOf(phone, "model_copy");
    const url = settings.get("mmsc_url")!;
    return `Current APN Name: ${str(settings.get("apn_name")!)}\nMMSC URL (for picture messages): ${truthy(url) ? str(url) : "Not Set"}\n(These are technical settings, usually best left unchanged.)`;
  }),
  set_apn_settings: tool("write", "apn_settings", setApn),
  reset_apn_settings: tool("write", "", (phone) => {
    apnOf(phone, "reset_at_reboot").set("reset_at_reboot", true);
    searchNetwork(phone);
    return withBar(phone, "APN settings will reset at reboot.");
  }),
  check_wifi_status: tool("read", "", wifiStatus),
  toggle_wifi: tool("write", "", toggleWifi),
  check_wifi_calling_status: tool(
    "read",
    "",
    (phone) => `Wi-Fi Calling is currently turned ${onOff(isOn(phone, "wifi_calling_enabled"))}.`,
  ),
  toggle_wifi_calling: toggle(switches.calling),
  check_vpn_status: tool("read", "", vpnStatus),
  connect_vpn: tool("write", "", (phone) =>
    connect(phone) ? withBar(phone, "VPN connected successfully.") : "VPN already connected.",
  ),
  disconnect_vpn: tool("write", "", (phone) =>
    withBar(
      phone,
      disconnect(phone)
        ? "VPN disconnected successfully."
        : "No active VPN connection to disconnect.",
    ),
  ),
  check_installed_apps: tool(
    "read",
    "",
    (phone) =>
      `The following apps are installed on the phone: ${[...appsOf(phone).keys()].join(", ")}`,
  ),
  check_app_status: tool("read", "app_name", appStatus),
  check_app_permissions: tool("read", "app_name", appPermissions),
  grant_app_permission: tool("write", "app_name permission", grant),
  can_send_mms: tool(
    "read",
    "",
    (phone) => `Your messaging app ${mmsWorks(phone) ? "can" : "cannot"} send MMS messages.`,
  ),
  reboot_device: tool("write", "", reboot),
  check_payment_request: tool("read", "", checkRequest),
  make_payment: tool("write", "", pay),
};

/** What the user can do. */
export const telecomUser: Toolkit<Phone> = methodsOf("TelecomUserTools", {
  ...tools,
  ...setups,
  ...assertions,
});

/** The switches of a phone, its VPN and its apps: what the user and a task's setup both act on. */
import { isOn, type Phone, searchNetwork } from "./phone.js";
import { type Dict, dict, field } from "./value.js";

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

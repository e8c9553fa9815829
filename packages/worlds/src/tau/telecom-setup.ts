/** What tasks do to a phone before the conversation, and what they check after it. */
import {
  apnOf,
  appsOf,
  connect,
  dataWorks,
  flip,
  mmsWorks,
  onOff,
  type Phone,
  type Switch,
  searchNetwork,
  speedTest,
  switches,
} from "./phone.js";
import { networkStatuses } from "./telecom-models.js";
import {
  type Dict,
  equal,
  field,
  less,
  lookUp,
  lower,
  refuse,
  repr,
  str,
  truthy,
  type Value,
} from "./value.js";
import { type Answer, type ToolDefinition, tool } from "./world.js";

type Run = (phone: Phone, ...values: Value[]) => Answer;
type Tools = Readonly<Record<string, ToolDefinition<Phone>>>;

/** A function that sets a switch, by toggling it once or twice. */
const turn = (
  which: Switch,
  on: boolean,
  text = `${which.label} is now ${onOff(on)}.`,
): ToolDefinition<Phone> =>
  tool("hidden", "", (phone) => {
    if (flip(phone, which) !== on) flip(phone, which);
    return text;
  });

const removePermission: Run = (phone, name, wanted) => {
  const app = lookUp(appsOf(phone), name!);
  const permission = lower(wanted!);
  if (app === undefined)
    return { loose: [false, `App '${str(name!)}' not found. Cannot remove permission.`] };
  const known = field<Dict>(app, "permissions");
  if (!known.has(permission))
    return { loose: [false, `Permission '${permission}' not tracked for app '${str(name!)}'.`] };
  known.set(permission, false);
  return { loose: [true, `Permission '${permission}' removed from app '${str(name!)}'.`] };
};

/** What tasks do to a phone before the conversation starts. */
export const setups: Tools = {
  set_user_info: tool("hidden", "name phone_number", (phone, name, number) => {
    phone.around.set("name", name!).set("phone_number", number!);
    return null;
  }),
  set_user_location: tool("hidden", "abroad", (phone, abroad) => {
    phone.around.set("is_abroad", abroad!);
    return null;
  }),
  turn_airplane_mode_on: turn(switches.airplane, true),
  turn_airplane_mode_off: turn(switches.airplane, false),
  turn_data_on: tool("hidden", "", (phone) => {
    phone.device.set("data_enabled", true);
    return "Data connection restored.";
  }),
  turn_data_off: turn(switches.data, false, "Data connection broken."),
  turn_roaming_on: turn(switches.roaming, true),
  turn_roaming_off: turn(switches.roaming, false),
  turn_data_saver_mode_on: turn(switches.saver, true),
  turn_data_saver_mode_off: turn(switches.saver, false),
  unseat_sim_card: tool("hidden", "", (phone) => {
    phone.device.set("sim_card_missing", true);
    searchNetwork(phone);
    return "SIM card un-seated successfully.";
  }),
  lock_sim_card: tool("hidden", "mode", (phone, mode) => {
    if (mode === "pin" || mode === "puk") phone.device.set("sim_card_status", `locked_${mode}`);
    searchNetwork(phone);
    return `SIM card locked successfully in ${str(mode!)} mode.`;
  }),
  break_apn_settings: tool("hidden", "", (phone) => {
    apnOf(phone, "apn_name").set("apn_name", "broken");
    searchNetwork(phone);
    return "APN settings broken. Please call reset_apn_settings() to fix.";
  }),
  break_apn_mms_setting: tool("hidden", "", (phone) => {
    apnOf(phone, "mmsc_url").set("mmsc_url", null);
    return "APN MMS setting broken. Please call reset_apn_settings() to fix.";
  }),
  set_wifi_calling: tool("hidden", "enabled mms_over_wifi=null", (phone, enabled, mms) => {
    if (!equal(phone.device.get("wifi_calling_enabled")!, enabled!)) flip(phone, switches.calling);
    const text = `Wi-Fi Calling is now ${onOff(truthy(enabled!))}.`;
    if (mms === null) return text;
    phone.device.set("wifi_calling_mms_over_wifi", mms!);
    return `${text}\nMMS over Wi-Fi is now ${onOff(truthy(mms!))}.`;
  }),
  break_vpn: tool("hidden", "", (phone) => {
    connect(phone);
    phone.vpnPerformance = "poor";
    field<Dict>(phone.device, "vpn_details").set("server_performance", "poor");
    return "VPN connection broken.";
  }),
  remove_app_permission: tool("hidden", "app_name permission", removePermission),
  simulate_network_search: tool("hidden", "", (phone) => {
    searchNetwork(phone);
    return null;
  }),
};

/** A check of a field or of something that works, against what is expected. */
const expects = (found: (phone: Phone) => Value): ToolDefinition<Phone> =>
  tool("hidden", "expected_status", (phone, expected) => equal(found(phone), expected!));

/** Checks of the final state. */
export const assertions: Tools = {
  assert_airplane_mode_status: expects(({ device }) => device.get("airplane_mode")!),
  assert_service_status: tool("hidden", "expected_status", (phone, expected) => {
    if (!(networkStatuses as readonly Value[]).includes(expected!))
      refuse(`${repr(expected!)} is not a valid NetworkStatus`);
    return equal(phone.device.get("network_connection_status")!, expected!);
  }),
  assert_mobile_data_status: expects(dataWorks),
  assert_mobile_roaming_status: expects(({ device }) => device.get("roaming_enabled")!),
  assert_mobile_data_saver_mode_status: expects(({ device }) => device.get("data_saver_mode")!),
  assert_internet_speed: tool(
    "hidden",
    "expected_speed expected_desc=null",
    (phone, least, grade) => {
      const measured = speedTest(phone);
      const fast = less(least!, measured.speed ?? 0, "<=");
      return grade === null ? fast : fast && measured.grade.toLowerCase() === lower(grade!);
    },
  ),
  assert_internet_not_excellent: tool(
    "hidden",
    "",
    (phone) => speedTest(phone).grade !== "Excellent",
  ),
  assert_can_send_mms: expects(mmsWorks),
  assert_mobile_data_usage_exceeded: expects(
    ({ around }) => around.get("mobile_data_usage_exceeded")!,
  ),
};

/** What each tool does, in our own words. */

/** Descriptions by the tool's name. */
export const descriptions: Readonly<Record<string, string>> = {
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

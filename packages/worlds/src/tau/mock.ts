/** τ²'s mock domain: a list of tasks for the agent, and a list of notifications for the user. */
import { type RecordDatabase, recordDatabase } from "./database.js";
import { build, type Kind, type Model } from "./model.js";
import {
  type Dict,
  dict,
  equal,
  field,
  type List,
  lookUp,
  PyError,
  refuse,
  str,
  type Value,
} from "./value.js";
import { methodsOf, type ToolDefinition, type Toolkit, tool } from "./world.js";

const texts: Kind = { list: "str" };

const task: Model = {
  name: "Task",
  extra: "drop",
  fields: [
    ["task_id", "str"],
    ["title", "str"],
    ["description", { optional: "str" }, null],
    ["status", { oneOf: ["pending", "completed"] }, "pending"],
  ],
};

const user: Model = {
  name: "User",
  extra: "drop",
  fields: [
    ["user_id", "str"],
    ["name", "str"],
    ["tasks", texts, []],
  ],
};

const notification: Model = {
  name: "Notification",
  extra: "refuse",
  fields: [
    ["notification_id", "str"],
    ["message", "str"],
    ["status", "str", "unread"],
    ["task_id", { optional: "str" }, null],
  ],
};

/** The agent's database. */
export const mockDb: Model = {
  name: "MockDB",
  extra: "refuse",
  fields: [
    ["tasks", { dict: task }],
    ["users", { dict: user }],
  ],
};

/** The user's database. */
export const mockUserDb: Model = {
  name: "MockUserDB",
  extra: "refuse",
  fields: [["notifications", { dict: notification }]],
};

/** The database with more data merged into it. */
export function mergeMock(db: RecordDatabase, data: Dict): RecordDatabase {
  return recordDatabase(build(mockDb, mergeDicts(db.root, data)));
}

function mergeDicts(into: Dict, data: Dict): Dict {
  const merged: Dict = new Map(into);
  for (const [key, value] of data) {
    const old = merged.get(key);
    const both = old instanceof Map && value instanceof Map;
    merged.set(key, both ? mergeDicts(old, value) : value);
  }
  return merged;
}

type Tools = Readonly<Record<string, ToolDefinition<RecordDatabase>>>;

const table = (db: RecordDatabase, name: string): Map<string, Dict> => {
  const found = db.root.get(name);
  if (found === undefined)
    throw new PyError("AttributeError", `'MockDB' object has no attribute '${name}'`);
  return found as Map<string, Dict>;
};

const find = (db: RecordDatabase, name: string, id: Value, what: string): Dict =>
  lookUp(table(db, name), id) ?? refuse(`${what} ${str(id)} not found`);

const agentTools: Tools = {
  create_task: tool("write", "user_id title description=null", (db, userId, title, description) => {
    const owner = find(db, "users", userId!, "User");
    const id = `task_${table(db, "tasks").size + 1}`;
    const made = build(task, dict({ task_id: id, title: title!, description: description! }));
    table(db, "tasks").set(id, made);
    field<List>(owner, "tasks").push(id);
    return made;
  }),
  get_users: tool("read", "", (db) => [...table(db, "users").values()]),
  update_task_status: tool("write", "task_id status", (db, id, status) =>
    find(db, "tasks", id!, "Task").set("status", status!),
  ),
  transfer_to_human_agents: tool("generic", "summary", () => "Transfer successful"),
  assert_number_of_tasks: tool("hidden", "user_id expected_number", (db, id, expected) =>
    equal(BigInt(field<List>(find(db, "users", id!, "User"), "tasks").length), expected!),
  ),
  assert_task_status: tool("hidden", "task_id expected_status", (db, id, expected) =>
    equal(find(db, "tasks", id!, "Task").get("status")!, expected!),
  ),
};

const userTools: Tools = {
  check_notifications: tool("read", "", (db) => [...table(db, "notifications").values()]),
  dismiss_notification: tool("write", "notification_id", (db, id) => {
    find(db, "notifications", id!, "Notification").set("status", "read");
    return `Notification ${str(id!)} dismissed`;
  }),
  add_notification: tool(
    "hidden",
    "notification_id message task_id=null",
    (db, id, message, about) => {
      const values = dict({ notification_id: id!, message: message!, task_id: about! });
      const made = build(notification, values);
      table(db, "notifications").set(str(id!), made);
      return made;
    },
  ),
  assert_notification_status: tool(
    "hidden",
    "notification_id expected_status",
    (db, id, expected) =>
      equal(find(db, "notifications", id!, "Notification").get("status")!, expected!),
  ),
};

/** What the agent can do. */
export const mockAgent: Toolkit<RecordDatabase> = methodsOf("MockTools", agentTools);

/** What the user can do. */
export const mockUser: Toolkit<RecordDatabase> = methodsOf("MockUserTools", userTools);

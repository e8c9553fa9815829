/** A data folder of our own, in the original's layout, for tests: the mock domain with two tasks. */
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** The files of the mock domain; tests replace some by damaged ones. */
export const madeFiles: Readonly<Record<string, string>> = {
  "db.json": JSON.stringify({
    tasks: { task_1: { task_id: "task_1", title: "Water the plants", status: "pending" } },
    users: { user_1: { user_id: "user_1", name: "Ada", tasks: ["task_1"] } },
  }),
  "user_db.json": JSON.stringify({
    notifications: { notif_1: { notification_id: "notif_1", message: "Plants!" } },
  }),
  "policy.md": "Make and finish tasks.",
  "policy_solo.md": "Make and finish tasks alone.",
  "split_tasks.json": JSON.stringify({ base: ["finish", "make"] }),
  "tasks.json": JSON.stringify([
    {
      id: "finish",
      user_scenario: {
        instructions: {
          reason_for_call: "You watered the plants. You want task_1 to be completed.",
          known_info: "You are Ada. Your user id is user_1.",
          unknown_info: "You do not know your e-mail address.",
        },
      },
      ticket: "Mark task_1 as completed.",
      evaluation_criteria: {
        actions: [
          { name: "update_task_status", arguments: { task_id: "task_1", status: "completed" } },
        ],
        communicate_info: ["1,000 litres"],
        reward_basis: ["DB", "ACTION"],
      },
    },
    {
      id: "make",
      user_scenario: {
        instructions:
          "You want a task called 'Feed the cat'. Then use dismiss_notification on notif_1.",
      },
      evaluation_criteria: {
        actions: [
          { name: "create_task", arguments: { user_id: "user_1", title: "Feed the cat" } },
          {
            name: "dismiss_notification",
            requestor: "user",
            arguments: { notification_id: "notif_1" },
          },
        ],
        env_assertions: [
          {
            env_type: "assistant",
            func_name: "assert_number_of_tasks",
            arguments: { user_id: "user_1", expected_number: 2 },
          },
        ],
        reward_basis: ["DB", "ENV_ASSERTION"],
      },
    },
  ]),
};

/** Writes a data folder; a file that is undefined is left out. */
export function makeData(changes: Readonly<Record<string, string | undefined>> = {}): string {
  const data = mkdtempSync(join(tmpdir(), "tau-"));
  const folder = join(data, "tau2", "mock");
  mkdirSync(folder, { recursive: true });
  for (const [name, text] of Object.entries({ ...madeFiles, ...changes }))
    if (text !== undefined) writeFileSync(join(folder, name), text);
  return data;
}

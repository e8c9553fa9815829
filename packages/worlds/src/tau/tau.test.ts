import { rmSync } from "node:fs";
import { envChecks } from "@pawl/core/envs/conformance.js";
import type { Env, Environment, RemoteEnv } from "@pawl/core/envs/env.js";
import { openEnvironment } from "@pawl/core/envs/open.js";
import { callText } from "@pawl/core/text/tool.js";
import { afterAll, describe, expect, it } from "vitest";
import { says, startChatServer } from "../../../../tests/helpers/chat-server.js";
import { madeFiles, makeData } from "./testing.js";

const folders: string[] = [];
afterAll(() => {
  for (const folder of folders) rmSync(folder, { recursive: true });
});

function made(changes: Parameters<typeof makeData>[0] = {}): string {
  const data = makeData(changes);
  folders.push(data);
  return data;
}

const open = (options: object = {}): Environment =>
  openEnvironment({ name: "tau", domain: "tau2-mock", data: made(), ...options });

const call = (tool: string, values: object = {}): string =>
  callText({ tool, arguments: values as Record<string, unknown> });
const say = (content: string): string => call("respond", { content });
const FINISH = call("update_task_status", { task_id: "task_1", status: "completed" });

function start(environment: Environment, id: string): Env {
  const env = environment.create() as Env;
  env.reset(environment.task(id), 0);
  return env;
}

describe("a conversation", () => {
  it.each(["scripted", "none"])("keeps the contract with user: %s", async (user) => {
    const environment = open({ user });
    const actions = [FINISH, say("Is there anything else?"), call("get_users"), call("done")];
    for (const check of envChecks(environment, { actions, steps: 8 }))
      await expect(check.run(), check.name).resolves.toBeUndefined();
  });

  it("opens with why the user calls, and tells what is asked for", () => {
    const env = start(open(), "base/finish");
    expect(env.goal).toBe("I watered the plants. I want task_1 to be completed.");
    expect(env.step(say("What is your user id?")).observation).toBe("My user id is user_1.");
    expect(env.step(say("And your e-mail address?")).observation).toBe(
      "I do not know my e-mail address.",
    );
    expect(env.step(say("Shall I complete the task?")).observation).toMatch(
      /^Yes, please go ahead\./,
    );
  });

  it("is worth 1 if the databases are as after the reference solution, else 0", () => {
    const environment = open();
    const end = (env: Env) => {
      env.step(say("Anything else?"));
      return env.step(say("Anything else?"));
    };
    const solved = start(environment, "base/finish");
    expect(solved.step(FINISH).info.valid).toBe(true);
    expect(end(solved)).toMatchObject({ reward: 1, done: true, info: { success: true } });
    const idle = start(environment, "base/finish");
    expect(end(idle)).toMatchObject({ reward: 0, done: true, info: { success: false } });
  });

  it("without calls in its reference, is lost by a change; without a reference, by nothing", () => {
    const reward = (criteria: object, ...actions: string[]): number => {
      const [task] = JSON.parse(madeFiles["tasks.json"]!) as [Record<string, unknown>];
      const changed = { ...task, evaluation_criteria: { ...criteria, reward_basis: ["DB"] } };
      const files = { "tasks.json": JSON.stringify([changed]) };
      const split = { "split_tasks.json": JSON.stringify({ base: ["finish"] }) };
      const env = start(open({ data: made({ ...files, ...split }) }), "base/finish");
      for (const action of actions) env.step(action);
      env.step(say("Anything else?"));
      return env.step(say("Anything else?")).reward;
    };
    expect(reward({ actions: [] })).toBe(1);
    expect(reward({ actions: [] }, FINISH)).toBe(0);
    expect(reward({ env_assertions: [] }, FINISH)).toBe(0);
    expect(reward({ actions: null }, FINISH)).toBe(1);
  });

  it("lets the user act on its own side", () => {
    const env = start(open(), "base/make");
    env.step(call("create_task", { user_id: "user_1", title: "Feed the cat" }));
    const told = env.step(say("Please run dismiss_notification for notif_1."));
    expect(told.observation).toBe(
      "I did that. This is what I see:\nNotification notif_1 dismissed",
    );
    env.step(say("Anything else?"));
    expect(env.step(say("Anything else?")).reward).toBe(1);
  });

  it("answers wrong calls as the original does", () => {
    const env = start(open(), "base/finish");
    const answers = [
      call("update_task_status", { task_id: "task_1" }),
      call("update_task_status", { task_id: 2.5, status: "x" }),
      call("no_such_tool"),
      call("check_notifications"),
    ].map((action) => env.step(action));
    expect(answers.map(({ observation }) => observation)).toEqual([
      "Error: MockTools.update_task_status() missing 1 required positional argument: 'status'",
      "Error: Task 2.5 not found",
      "Error: Tool 'no_such_tool' not found.",
      "Error: Tool 'check_notifications' not found.",
    ]);
    expect(answers.every(({ info }) => !info.valid)).toBe(true);
  });

  it("gives numbers to tools as they were written", () => {
    const env = start(open(), "base/finish");
    const { observation } = env.step(
      '{"tool":"update_task_status","arguments":{"task_id":2.0,"status":"x"}}',
    );
    expect(observation).toBe("Error: Task 2.0 not found");
  });

  it("ends without a reward after ten errors", () => {
    const env = start(open(), "base/finish");
    env.step(FINISH);
    const results = Array.from({ length: 10 }, () => env.step(call("no_such_tool")));
    expect(results.map(({ done }) => done)).toEqual([...Array(9).fill(false), true]);
    expect(results.at(-1)!.reward).toBe(0);
  });

  it("marks what changes the databases as irreversible", () => {
    const env = start(open(), "base/finish");
    expect(env.irreversible!(FINISH)).toBe(true);
    expect(env.irreversible!(call("transfer_to_human_agents", { summary: "x" }))).toBe(true);
    expect(env.irreversible!(call("get_users"))).toBe(false);
    expect(env.irreversible!(say("hello"))).toBe(false);
  });

  it("has the policy as its system text and the scenario as a world model's context", () => {
    const environment = open();
    expect(environment.prompt?.instructions).toContain("Make and finish tasks.");
    expect(start(environment, "base/finish").initialContext!()).toContain("You are Ada.");
  });
});

describe("without a user", () => {
  it("the agent has both sides' tools, and only tasks with tickets are listed", () => {
    const environment = open({ user: "none" });
    expect(environment.tasks("base").map(({ id }) => id)).toEqual(["base/finish"]);
    const env = start(environment, "base/finish");
    expect(env.goal).toBe("Mark task_1 as completed.");
    const names = env.tools!().map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining(["dismiss_notification", "done"]));
    expect(names).not.toContain("respond");
    env.step(FINISH);
    expect(env.step(call("done"))).toMatchObject({ reward: 1, done: true });
  });
});

describe("a user behind an endpoint", () => {
  const reply = (message: object) => (response: import("node:http").ServerResponse) => {
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ choices: [{ message }] }));
  };
  const toolCall = {
    function: { name: "dismiss_notification", arguments: '{"notification_id": "notif_1"}' },
  };

  it("speaks, calls its own tools, and ends the conversation", async () => {
    const server = await startChatServer(
      reply({ content: "A cat task, please." }),
      reply({ content: null, tool_calls: [toolCall] }),
      reply({ content: "Dismissed." }),
      reply({ content: "###STOP###" }),
    );
    try {
      const chat = { baseUrl: server.baseUrl, model: "m", retries: 0 };
      const environment = open({ user: "chat", chat });
      const env = environment.create() as RemoteEnv;
      expect(await env.reset(environment.task("base/make"), 3)).toBe("A cat task, please.");
      await env.step(call("create_task", { user_id: "user_1", title: "Feed the cat" }));
      expect((await env.step(say("Please dismiss it."))).observation).toBe("Dismissed.");
      expect(await env.step(say("Anything else?"))).toMatchObject({ reward: 1, done: true });
      const { messages, tools } = server.received[2]!.body as unknown as {
        messages: { role: string; content: string }[];
        tools: { function: { name: string } }[];
      };
      // The agent is the user's user, and its calls are not the user's business.
      expect(messages.map(({ role }) => role)).toEqual([
        "system",
        "user",
        "assistant",
        "user",
        "assistant",
        "tool",
      ]);
      expect(messages[0]!.content).toContain("<scenario>");
      expect(messages[5]!.content).toBe("Notification notif_1 dismissed");
      expect(tools.map((one) => one.function.name)).toEqual([
        "check_notifications",
        "dismiss_notification",
      ]);
    } finally {
      await server.close();
    }
  });

  it("that fails breaks the episode", async () => {
    const server = await startChatServer((response) => {
      response.writeHead(400);
      response.end("no");
    });
    try {
      const chat = { baseUrl: server.baseUrl, model: "m", retries: 0 };
      const environment = open({ user: "chat", chat });
      const env = environment.create() as RemoteEnv;
      await expect(env.reset(environment.task("base/make"))).rejects.toThrow(/status 400/);
    } finally {
      await server.close();
    }
  });
});

describe("natural-language assertions", () => {
  const tasks = JSON.stringify([
    {
      id: "greet",
      user_scenario: { instructions: "You want to be greeted." },
      evaluation_criteria: {
        nl_assertions: ["The agent greets.", "The agent is kind."],
        reward_basis: ["DB", "NL_ASSERTION"],
      },
    },
  ]);
  const data = () => made({ "tasks.json": tasks, "split_tasks.json": '{"base": ["greet"]}' });

  it.each([
    ["1: yes\n2: yes", 1],
    ["1: yes\n2: No, it is not", 0],
  ])("are a judge's: %j", async (said, reward) => {
    const server = await startChatServer(says(said));
    try {
      const judge = { baseUrl: server.baseUrl, model: "j", retries: 0 };
      const environment = open({ data: data(), judge });
      const env = environment.create() as RemoteEnv;
      await env.reset(environment.task("base/greet"));
      expect(await env.step(say("Hello! Anything else?"))).toMatchObject({ done: true, reward });
      expect(server.received[0]!.body.messages[0]!.content).toContain("assistant: Hello!");
    } finally {
      await server.close();
    }
  });

  it("do not count without a judge", () => {
    const env = start(open({ data: data() }), "base/greet");
    expect(env.step(say("Anything else?"))).toMatchObject({ done: true, reward: 1 });
  });
});

describe("bad input", () => {
  it.each<readonly [string, Parameters<typeof makeData>[0], RegExp]>([
    ["a missing database", { "db.json": undefined }, /no file db\.json .*pawl env info tau/s],
    ["a cut database", { "db.json": '{"tasks": {' }, /db\.json is damaged: .*character/],
    [
      "a database of another shape",
      { "db.json": '{"tasks": 1, "users": {}}' },
      /db\.json: .*MockDB\ntasks/,
    ],
    ["missing tasks", { "tasks.json": undefined }, /no file tasks\.json/],
    ["tasks that are none", { "tasks.json": '[{"id": 3}]' }, /tasks\.json, task 0: id/],
    ["a task that no file has", { "split_tasks.json": '{"base": ["nope"]}' }, /no task "nope"/],
    ["no policy", { "policy.md": undefined }, /no file policy\.md/],
  ])("%s is named", (_, changes, message) => {
    expect(() => open({ data: made(changes) }).tasks("base")).toThrow(message);
  });

  it("contradictions and what is missing are refused", () => {
    expect(() => open({ data: "/nowhere" })).toThrow(/\/nowhere has no folder tau2\/mock/);
    expect(() => open({ user: "chat" })).toThrow(/needs chat\.baseUrl/);
    expect(() => open({ chat: { baseUrl: "http://x/v1", model: "m" } })).toThrow(
      /chat is for user: chat/,
    );
    const noTickets = madeWithoutTickets();
    expect(() => open({ user: "none", data: noTickets })).toThrow(/needs tasks with tickets/);
    expect(() => start(open(), "base/zzz")).toThrow(/no task "base\/zzz"/);
  });
});

function madeWithoutTickets(): string {
  return made({
    "tasks.json": JSON.stringify([{ id: "a", user_scenario: { instructions: "You wait." } }]),
    "split_tasks.json": '{"base": ["a"]}',
  });
}

import { once } from "node:events";
import { connect } from "node:net";
import { dose } from "@pawl/core/dose-testing.js";
import { EnvError, type Environment, type RemoteEnv } from "@pawl/core/envs/env.js";
import { openEnvironment } from "@pawl/core/envs/open.js";
import { numberedTasks, taskLists } from "@pawl/core/envs/task-lists.js";
import type { WorldModel } from "@pawl/worldmodel/model.js";
import { createSimulator } from "@pawl/worldmodel/simulator.js";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Served, served, talker } from "./testing.js";

const reset = (data: object = {}) => ({ type: "reset", data });
const step = (action: string) => ({ type: "step", data: { action } });

/** A world that answers when it is told to, or fails. */
function slowEnvironment(release: Promise<void>): Environment & { closed: number } {
  const lists = taskLists("slow", { train: numberedTasks("train", 3, "wait") });
  const environment = {
    name: "slow",
    ...lists,
    stepLimit: 5,
    maxReturn: 1,
    closed: 0,
    create: (): RemoteEnv => ({
      goal: "Wait.",
      taskType: "wait",
      reset: async () => "You wait.",
      async step(action) {
        if (action === "fail") throw new EnvError("the world broke");
        await release;
        return {
          observation: action,
          reward: 0,
          done: false,
          info: { valid: true, success: false },
        };
      },
      async close() {
        environment.closed++;
      },
    }),
  };
  return environment;
}

describe("a session", () => {
  let server: Served;
  beforeAll(async () => {
    server = await served();
  });
  afterAll(() => server.stop());

  it("plays a task by split and index as the environment does by itself", async () => {
    const environment = openEnvironment({ name: "household" });
    const env = environment.create();
    const task = environment.tasks("valid_seen")[4]!;
    const first = await env.reset(task, 11);
    const client = await talker(server.at);
    const seen = await client.ask(reset({ split: "valid_seen", index: 4, seed: 11 }));
    expect(seen).toEqual({
      type: "observation",
      data: {
        observation: {
          text: first,
          goal: env.goal,
          task: task.id,
          task_type: task.type,
          admissible_actions: env.admissibleActions!(),
          valid: true,
          success: false,
          score: null,
          metadata: {},
        },
        reward: null,
        done: false,
      },
    });
    const actions = ["fly away"];
    let done = false;
    for (let count = 0; !done && count < 60; count++) {
      const action = actions[count] ?? environment.expert!(env);
      const result = await env.step(action);
      const { data } = await client.ask(step(action));
      ({ done } = data);
      expect([data.observation.text, data.reward, done]).toEqual([
        result.observation,
        result.reward,
        result.done,
      ]);
      expect(data.observation).toMatchObject(result.info);
      if (!done) expect(data.observation.admissible_actions).toEqual(env.admissibleActions!());
      const { data: state } = await client.ask({ type: "state" });
      expect(state).toMatchObject({
        ...{ step_count: count + 1, step_limit: environment.stepLimit, task: task.id },
        ...{ split: "valid_seen", index: 4, seed: 11, done },
        initial_context: env.initialContext!(),
      });
    }
    expect(done).toBe(true);
    expect(await client.ask(step("look"))).toMatchObject({
      type: "error",
      data: { code: "EXECUTION_ERROR", message: expect.stringContaining("over: reset") },
    });
    // The session goes on with another task.
    expect(await client.ask(reset({ task: "train/7" }))).toMatchObject({
      data: { observation: { task: "train/7" } },
    });
    await client.close();
  });

  it("lets the seed choose where no index is given, and draws a seed where none is", async () => {
    const client = await talker(server.at);
    const drawn = async (data: object) => {
      await client.ask(reset(data));
      return (await client.ask({ type: "state" })).data;
    };
    const [first, again, other] = [
      await drawn({ seed: 5 }),
      await drawn({ seed: 5 }),
      await drawn({ seed: 6 }),
    ];
    expect([first.task, first.split]).toEqual([again.task, "train"]);
    expect(other.task).not.toBe(first.task);
    const free = await drawn({ split: "test_unseen", episode_id: "mine" });
    expect(free).toMatchObject({ split: "test_unseen", episode_id: "mine" });
    expect(await drawn({ split: free.split, index: free.index, seed: free.seed })).toMatchObject({
      task: free.task,
    });
    await client.close();
  });

  it("refuses what it does not know by name, and goes on", async () => {
    const client = await talker(server.at);
    const code = async (message: unknown) => (await client.ask(message)).data;
    expect(await code("{")).toMatchObject({ code: "INVALID_JSON" });
    expect(await code(Buffer.from("x").toString())).toMatchObject({ code: "INVALID_JSON" });
    expect(await code({ type: "jump" })).toMatchObject({ code: "UNKNOWN_TYPE" });
    expect(await code([])).toMatchObject({ code: "UNKNOWN_TYPE" });
    expect(await code(step("look"))).toMatchObject({
      code: "EXECUTION_ERROR",
      message: expect.stringContaining("reset first"),
    });
    expect(await code({ ...reset(), more: 1 })).toMatchObject({ code: "VALIDATION_ERROR" });
    const refused = await code(reset({ splt: "train" }));
    expect(refused).toMatchObject({
      code: "VALIDATION_ERROR",
      message: expect.stringContaining("splt"),
      errors: [{ type: "unrecognized_keys", loc: [] }],
    });
    expect(await code(reset({ seed: -1 }))).toMatchObject({ code: "VALIDATION_ERROR" });
    expect(await code(reset({ split: "trian" }))).toMatchObject({
      code: "EXECUTION_ERROR",
      message: expect.stringContaining('Did you mean "train"?'),
    });
    expect(await code(reset({ index: 10 ** 9 }))).toMatchObject({ code: "EXECUTION_ERROR" });
    expect(await code(reset({ index: 1, task: "train/0" }))).toMatchObject({
      code: "EXECUTION_ERROR",
    });
    await code(reset());
    expect(await code({ type: "step", data: { action: 3 } })).toMatchObject({
      code: "VALIDATION_ERROR",
      errors: [{ loc: ["action"] }],
    });
    client.socket.send(Buffer.from('{"type":"state"}'), { binary: true });
    expect(await client.hear()).toMatchObject({ data: { code: "INVALID_JSON" } });
    const mcp = await client.ask({
      type: "mcp",
      data: { jsonrpc: "2.0", id: 1, method: "tools/list" },
    });
    expect(mcp.data.error.message).toContain("does not support MCP");
    client.socket.send('{"type":"close"}');
    expect(await client.closed).toEqual([1000, ""]);
  });

  it("keeps sessions apart, whatever they are sent", async () => {
    const calm = await talker(server.at);
    await calm.ask(reset({ split: "train", index: 0, seed: 0 }));
    const before = await calm.ask({ type: "state" });
    const wild = await talker(server.at);
    const anything = fc.oneof(
      fc.string(),
      fc.json(),
      fc
        .record({
          type: fc.constantFrom("reset", "step", "state", "mcp", "jump"),
          data: fc.oneof(
            fc.jsonValue(),
            fc.dictionary(
              fc.constantFrom("action", "seed", "split", "index", "task", "__proto__", "method"),
              fc.jsonValue(),
            ),
          ),
        })
        .map((message) => JSON.stringify(message)),
    );
    await fc.assert(
      fc.asyncProperty(anything, async (text) => {
        fc.pre(!/"type"\s*:\s*"close"/.test(text));
        const { type } = await wild.ask(text);
        expect(["observation", "state", "error", "mcp"]).toContain(type);
      }),
      { numRuns: dose(500) },
    );
    expect(await calm.ask({ type: "state" })).toEqual(before);
    await wild.close();
    await calm.close();
  });
});

describe("limits", () => {
  it("bounds sessions: one more is told so, and a place is free again after a close", async () => {
    const server = await served({ limits: { maxSessions: 2 } });
    const [first, second] = [await talker(server.at), await talker(server.at)];
    const third = await talker(server.at);
    expect(await third.hear()).toMatchObject({
      type: "error",
      data: { code: "CAPACITY_REACHED", active_sessions: 2, max_sessions: 2 },
    });
    expect(await third.closed).toEqual([1000, ""]);
    await first.close();
    const fourth = await talker(server.at);
    expect(await fourth.ask(reset())).toMatchObject({ type: "observation" });
    await second.close();
    await fourth.close();
    await server.stop();
  });

  it("bounds messages, messages that wait, and idle time", async () => {
    const held = deferred();
    const environment = slowEnvironment(held.promise);
    const server = await served({
      environment,
      limits: { maxMessageBytes: 1000 },
    });
    const long = await talker(server.at);
    long.socket.send(JSON.stringify(step("x".repeat(2000))));
    expect((await long.closed)[0]).toBe(1009);
    const flood = await talker(server.at);
    await flood.ask(reset());
    for (let count = 0; count < 200; count++) flood.socket.send(JSON.stringify(step("wait")));
    expect((await flood.closed)[0]).toBe(1008);
    held.resolve();
    await server.stop();
    // One to look at, and one for each session.
    expect(environment.closed).toBe(3);
    const brief = await served({ environment, limits: { idleMs: 200 } });
    const idle = await talker(brief.at);
    await idle.ask(reset());
    expect(await idle.closed).toEqual([1001, "the session was idle for too long"]);
    await brief.stop();
    expect(environment.closed).toBe(5);
  });

  it("answers in order, and loses the episode of a world that fails", async () => {
    const held = deferred();
    const server = await served({ environment: slowEnvironment(held.promise) });
    const client = await talker(server.at);
    await client.ask(reset());
    const answers = ["one", "two", "three"].map((text) => client.ask(step(text)));
    held.resolve();
    expect((await Promise.all(answers)).map(({ data }) => data.observation.text)).toEqual([
      "one",
      "two",
      "three",
    ]);
    expect(await client.ask(step("fail"))).toMatchObject({
      data: { code: "EXECUTION_ERROR", message: "the world broke" },
    });
    expect(await client.ask(step("one"))).toMatchObject({
      data: { message: expect.stringContaining("reset first") },
    });
    await client.ask(reset());
    expect(await client.ask(step("one"))).toMatchObject({ type: "observation" });
    await client.close();
    await server.stop();
  });

  it("survives many connections, most of which it drops", async () => {
    const server = await served({ limits: { maxSessions: 4 } });
    const [host, port] = server.at.split(":");
    const kept = await talker(server.at);
    await kept.ask(reset());
    for (let wave = 0; wave < 3; wave++) {
      const sockets = Array.from({ length: 300 }, () => connect(Number(port), host));
      await Promise.all(
        sockets.map((socket) =>
          Promise.race([once(socket, "connect"), once(socket, "close")]).catch(() => undefined),
        ),
      );
      for (const socket of sockets) socket.destroy();
    }
    expect(await kept.ask(step("look"))).toMatchObject({ type: "observation" });
    await kept.close();
    await server.stop();
  });
});

const deferred = () => {
  let resolve = (): void => undefined;
  const promise = new Promise<void>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
};

it("serves a world model: one question at a time, and who leaves takes nobody's answer along", async () => {
  const asked: string[][] = [];
  const answers: (() => void)[] = [];
  const model: WorldModel = {
    name: "dream",
    predict: (queries, signal) =>
      new Promise((resolve, reject) => {
        asked.push(queries.map(({ action }) => action));
        signal?.addEventListener("abort", () => reject(signal.reason));
        const dreams = queries.map(({ action }) => `you dream: ${action}`);
        answers.push(() =>
          resolve(dreams.map((observation) => ({ observation, done: false, success: false }))),
        );
      }),
  };
  const world = openEnvironment({ name: "household" });
  const { environment } = createSimulator({ environment: world, model });
  let steps = 0;
  const counted: Environment = {
    ...environment,
    create() {
      const env = environment.create() as RemoteEnv;
      const { step: play } = env;
      return Object.assign(env, {
        step(...args: Parameters<RemoteEnv["step"]>) {
          steps++;
          return play(...args);
        },
      });
    },
  };
  const server = await served({ environment: counted });
  const clients = [await talker(server.at), await talker(server.at), await talker(server.at)];
  for (const client of clients) await client.ask(reset({ split: "train", index: 0 }));
  const first = clients[0]!.ask(step("one"));
  await until(() => asked.length === 1);
  clients[1]!.socket.send(JSON.stringify(step("two")));
  const third = clients[2]!.ask(step("three"));
  await until(() => steps === 3);
  answers[0]!();
  expect((await first).data.observation.text).toBe("you dream: one");
  await until(() => asked.length === 2);
  expect(asked).toEqual([["one"], ["two", "three"]]);
  await clients[1]!.close();
  answers[1]!();
  expect((await third).data.observation.text).toBe("you dream: three");
  await server.stop();
});

/** Waits for something that other parts of this process do. */
async function until(there: () => boolean): Promise<void> {
  while (!there()) await new Promise((resolve) => setTimeout(resolve, 5));
}

describe("over HTTP", () => {
  let server: Served;
  beforeAll(async () => {
    server = await served({ summary: "a house" });
  });
  afterAll(() => server.stop());
  const call = async (path: string, body?: unknown, headers: Record<string, string> = {}) => {
    const response = await fetch(`http://${server.at}${path}`, {
      headers: { ...(body !== undefined && { "content-type": "application/json" }), ...headers },
      ...(body !== undefined && {
        method: "POST",
        body: typeof body === "string" ? body : JSON.stringify(body),
      }),
    });
    // biome-ignore lint/suspicious/noExplicitAny: tests look at whatever came.
    return [response.status, (await response.json()) as any] as const;
  };

  it("says what the environment is, and which tasks it has", async () => {
    expect(await call("/health")).toEqual([200, { status: "healthy" }]);
    expect(await call("/list_environments")).toEqual([200, ["household"]]);
    expect(await call("/metadata")).toMatchObject([
      200,
      { name: "household", description: "a house", version: expect.any(String) },
    ]);
    const [, schema] = await call("/schema");
    expect(schema).toMatchObject({
      action: { title: "TextAction", required: ["action"] },
      observation: {
        title: "PawlObservation",
        "x-pawl": { env: "household", maxReturn: 10, sessions: 1024, admissible: true },
      },
      state: { properties: { step_count: { type: "integer" } } },
    });
    expect(await call("/HOUSEHOLD/splits")).toMatchObject([
      200,
      [{ name: "train", type: "train" }, { type: "validation" }, {}, { type: "test" }],
    ]);
    const environment = openEnvironment({ name: "household" });
    const tasks = environment.tasks("valid_seen");
    const split = "valid_seen";
    expect(await call("/household/num_tasks", { split })).toEqual([
      200,
      { num_tasks: tasks.length },
    ]);
    expect((await call("/household/tasks", { split }))[1].tasks).toHaveLength(tasks.length);
    expect(await call("/household/task", { split, index: 3 })).toEqual([
      200,
      { task: { ...tasks[3], index: 3 } },
    ]);
    expect((await call("/household/task_range", { split, start: 2, stop: 4 }))[1].tasks).toEqual([
      { ...tasks[2], index: 2 },
      { ...tasks[3], index: 3 },
    ]);
    expect(await call("/household/task", { split, index: -1 })).toMatchObject([400, {}]);
    expect(await call("/household/tasks", { split: "no" })).toMatchObject([
      400,
      { detail: expect.stringContaining('no split "no"') },
    ]);
    expect((await call("/webshop/splits"))[0]).toBe(404);
    expect((await call("/nothing"))[0]).toBe(404);
  });

  it("resets without a session, and does not step without one", async () => {
    const [status, first] = await call("/reset", { split: "train", index: 2, seed: 1 });
    expect([status, first.observation.task, first.done]).toEqual([200, "train/2", false]);
    expect(await call("/reset", { sed: 1 })).toMatchObject([422, { detail: [{ loc: [] }] }]);
    expect(await call("/step", { action: { action: "look" } })).toMatchObject([
      500,
      { detail: expect.stringContaining("/ws") },
    ]);
    expect(await call("/step", { act: 1 })).toMatchObject([
      422,
      { detail: [{ loc: ["body", "action"] }] },
    ]);
    expect(await call("/state")).toMatchObject([200, { step_count: 0 }]);
    expect((await call("/reset", "{"))[0]).toBe(400);
    expect((await call("/reset", "{}", { "content-type": "text/plain" }))[0]).toBe(415);
    expect((await call("/schema", {}))[0]).toBe(405);
  });

  it("asks for its key everywhere but at /health; without one, it refuses other sites' pages", async () => {
    const locked = await served({ key: "secret" });
    const url = `http://${locked.at}`;
    expect((await fetch(`${url}/health`)).status).toBe(200);
    expect((await fetch(`${url}/schema`)).status).toBe(401);
    const authorization = "Bearer secret";
    expect((await fetch(`${url}/schema`, { headers: { authorization } })).status).toBe(200);
    await expect(talker(locked.at)).rejects.toThrow("401");
    const client = await talker(locked.at, "/ws", { authorization });
    expect(await client.ask(reset())).toMatchObject({ type: "observation" });
    await client.close();
    await locked.stop();
    await expect(talker(server.at, "/ws", { origin: "https://evil.example" })).rejects.toThrow(
      "403",
    );
    await expect(talker(server.at, "/ws", { host: "evil.example" })).rejects.toThrow("403");
    await expect(talker(server.at, "/other")).rejects.toThrow("404");
    await expect(talker(server.at, "/ws", { origin: "http://localhost:3000" })).rejects.toThrow(
      "403",
    );
    // Some clients name the server itself.
    const page = await talker(server.at, "/ws", { origin: `http://${server.at}` });
    await page.close();
  });
});

describe("an environment with tools", () => {
  it("is played by calls, over the socket and over MCP", async () => {
    const server = await served({ environment: openEnvironment({ name: "desk", level: "easy" }) });
    const rpc = async (method: string, params: object = {}) => {
      const response = await fetch(`http://${server.at}/mcp`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
      });
      // biome-ignore lint/suspicious/noExplicitAny: tests look at whatever came.
      return (await response.json()) as any;
    };
    const { result } = await rpc("openenv/session/create");
    const { session_id } = result as { session_id: string };
    const client = await talker(server.at, `/ws?session_id=${session_id}`);
    const twice = await talker(server.at, `/ws?session_id=${session_id}`);
    expect(await twice.hear()).toMatchObject({ data: { code: "SESSION_ERROR" } });
    const unknown = await talker(server.at, "/ws?session_id=none");
    expect(await unknown.hear()).toMatchObject({ data: { code: "SESSION_ERROR" } });
    await client.ask(reset({ split: "train", index: 0 }));
    const listed = await client.ask({ type: "step", data: { type: "list_tools" } });
    expect(listed.data.observation.tools[0]).toMatchObject({
      name: "get_order",
      input_schema: { type: "object" },
    });
    expect((await rpc("tools/list", { session_id })).result.tools).toHaveLength(6);
    const wrong = await client.ask({
      type: "step",
      data: { type: "call_tool", tool_name: "get_order", arguments: { order: "x" } },
    });
    expect(wrong.data.observation).toMatchObject({
      valid: false,
      tool_name: "get_order",
      result: expect.stringContaining("do not fit"),
    });
    const call = { name: "close_case", arguments: { outcome: "done" }, session_id };
    expect((await rpc("tools/call", call)).result).toMatchObject({
      data: expect.any(String),
      _meta: { "pawl/step": { done: true } },
    });
    expect((await client.ask({ type: "state" })).data).toMatchObject({ step_count: 2, done: true });
    expect(await client.ask({ type: "step", data: { action: "look" } })).toMatchObject({
      data: { code: "VALIDATION_ERROR" },
    });
    await client.close();
    expect((await rpc("openenv/session/close", { session_id })).result).toMatchObject({
      closed: true,
    });
    expect((await rpc("tools/list", { session_id })).error.code).toBe(-32_602);
    expect((await rpc("openenv/session/close", { session_id })).error.code).toBe(-32_602);
    expect((await rpc("tools/list")).result.tools).toHaveLength(6);
    await server.stop();
  });
});

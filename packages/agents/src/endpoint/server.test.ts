import { connect } from "node:net";
import type { Sample, SampleRequest } from "@pawl/core/engine/engine.js";
import type { Sampler } from "@pawl/core/rollout/scheduler.js";
import fc from "fast-check";
import { afterEach, describe, expect, it } from "vitest";
import { createSession } from "../session.js";
import { hermes, scripted, tools } from "../testing.js";
import type { EndpointOptions } from "./answering.js";
import type { SessionRecord } from "./session-record.js";
import { startEndpoint, type TestEndpoint } from "./testing.js";

const open: TestEndpoint[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map((endpoint) => endpoint.close()));
});
async function start(says: Sampler | readonly string[], more: Partial<EndpointOptions> = {}) {
  const endpoint = await startEndpoint(says, more);
  open.push(endpoint);
  return endpoint;
}

const hello = [{ role: "user", content: "go on" }];
const request = (more: object = {}) => ({ model: "policy", messages: hello, ...more });
const offered = tools.map((tool) => ({ type: "function", function: tool }));
const COMPLETIONS = "/v1/chat/completions";
const call = '<tool_call>{"name": "look", "arguments": {"place": "shelf"}}</tool_call>';

/** A sampler whose answers wait until they are let go. */
function held() {
  const waiting: { request: Omit<SampleRequest, "count">; go(): void }[] = [];
  const arrived: (() => void)[] = [];
  let aborted = 0;
  const sampler: Sampler = {
    sample: (request, signal) =>
      new Promise<Sample>((resolve, reject) => {
        signal?.addEventListener("abort", () => {
          aborted += 1;
          reject(signal.reason);
        });
        const go = () => scripted(hermes, ["on"]).sample(request).then(resolve);
        waiting.push({ request, go });
        arrived.shift()?.();
      }),
  };
  return {
    sampler,
    waiting,
    aborted: () => aborted,
    next: () => new Promise<void>((resolve) => arrived.push(resolve)),
  };
}

/** Waits until something is so. */
async function until(isSo: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await isSo())) await new Promise((resolve) => setTimeout(resolve, 5));
}

describe("an answer", () => {
  it("is OpenAI's, with what was asked for", async () => {
    const { post } = await start([`<think>hm</think>so ${call}`, "go on"]);
    const wanted = { tools: offered, logprobs: true, return_token_ids: true };
    const [status, body] = await post(COMPLETIONS, request(wanted));
    expect(status).toBe(200);
    expect(body).toMatchObject({
      object: "chat.completion",
      model: "policy",
      choices: [
        {
          message: {
            ...{ role: "assistant", content: "so", reasoning_content: "hm", refusal: null },
            tool_calls: [
              { type: "function", function: { name: "look", arguments: '{"place":"shelf"}' } },
            ],
          },
          finish_reason: "tool_calls",
        },
      ],
    });
    const { token_ids: ids, logprobs } = body.choices[0];
    expect(hermes.decode(ids)).toBe(`<think>hm</think>so ${call}<|end|>`);
    expect(logprobs.content.map(({ token }: { token: string }) => token).join("")).toBe(
      hermes.decode(ids),
    );
    expect(logprobs.content[1].logprob).toBeCloseTo(-1.01);
    expect(hermes.decode(body.prompt_token_ids)).toContain("<|user|>go on<|end|><|assistant|>");
    expect(body.usage).toEqual({
      prompt_tokens: body.prompt_token_ids.length,
      completion_tokens: ids.length,
      total_tokens: body.prompt_token_ids.length + ids.length,
    });
    const [, plain] = await post(COMPLETIONS, request());
    expect(plain).not.toHaveProperty("prompt_token_ids");
    expect(plain.choices[0]).toEqual({
      index: 0,
      message: { role: "assistant", content: "go on", refusal: null },
      logprobs: null,
      finish_reason: "stop",
    });
  });

  it("streams as events that make the same answer, without splitting a character", async () => {
    const text = "héllo 👩‍👩‍👧 橡木";
    const { post } = await start([`<think>hm</think>${text}${call}${call}`]);
    const [status, body] = await post(
      COMPLETIONS,
      request({
        ...{ stream: true, stream_options: { include_usage: true }, tools: offered },
        ...{ logprobs: true, return_token_ids: true },
      }),
    );
    expect(status).toBe(200);
    const events = (body as string).split("\n\n").map((event) => event.replace("data: ", ""));
    expect(events.slice(-2)).toEqual(["[DONE]", ""]);
    const chunks = events.slice(0, -2).map((event) => JSON.parse(event));
    expect(new Set(chunks.map(({ id }) => id)).size).toBe(1);
    const deltas = chunks.flatMap(({ choices }) => choices).map(({ delta }) => delta);
    expect(deltas[0]).toEqual({ role: "assistant", content: "" });
    expect(deltas.map(({ content = "" }) => content).join("")).toBe(text);
    expect(deltas.map(({ reasoning_content = "" }) => reasoning_content).join("")).toBe("hm");
    expect(deltas.flatMap(({ tool_calls = [] }) => tool_calls)).toMatchObject([
      { index: 0, id: "c00000000" },
      { index: 1, id: "c00000001" },
    ]);
    const last = chunks.at(-2).choices[0];
    expect(last.finish_reason).toBe("tool_calls");
    expect(last.logprobs.content).toHaveLength(last.token_ids.length);
    expect(hermes.decode(last.token_ids)).toContain(text);
    expect(chunks[0].prompt_token_ids.length).toBe(chunks.at(-1).usage.prompt_tokens);
    expect(chunks.at(-1).choices).toEqual([]);
  });

  it("passes unknown tools and malformed calls on as they are", async () => {
    const { post } = await start([
      '<tool_call>{"name": "fly", "arguments": {}}</tool_call>',
      '<tool_call>{"name": look}</tool_call>',
    ]);
    const [, unknown] = await post(COMPLETIONS, request({ tools: offered }));
    expect(unknown.choices[0].message.tool_calls[0].function.name).toBe("fly");
    const [, malformed] = await post(COMPLETIONS, request({ tools: offered }));
    expect(malformed.choices[0]).toMatchObject({
      message: { content: '<tool_call>{"name": look}</tool_call>' },
      finish_reason: "stop",
    });
  });

  it.each([
    [
      { response_format: { type: "json_object" } },
      "response_format: is not supported: this engine",
    ],
    [{ tools: offered, tool_choice: "required" }, "tool_choice: is not supported: this engine"],
    [{ tools: offered, parallel_tool_calls: false }, "parallel_tool_calls: is not supported"],
    [
      { tools: [{ type: "function", function: { ...tools[0], strict: true } }] },
      "tools[].function.strict: is not supported",
    ],
  ])("that the model cannot be held to is refused: %j", async (more, message) => {
    const { post } = await start([]);
    const [status, { error }] = await post(COMPLETIONS, request(more));
    expect(status).toBe(400);
    expect(error.message).toContain(message);
    expect(error.param).toBe(message.split(":")[0]);
  });

  it("is of the model that is served", async () => {
    const { post, call: get } = await start([]);
    expect(await post(COMPLETIONS, request({ model: "gpt-9" }))).toEqual([
      404,
      {
        error: {
          message: "there is no model gpt-9; the one served here is policy",
          ...{ type: "invalid_request_error", param: "model", code: "model_not_found" },
        },
      },
    ]);
    const entry = { id: "policy", object: "model", owned_by: "pawl", created: expect.any(Number) };
    expect(await get("GET", "/v1/models")).toEqual([200, { object: "list", data: [entry] }]);
    expect(await get("GET", "/sessions/a/v1/models/policy")).toEqual([200, entry]);
    expect(await get("GET", "/health")).toEqual([200, { status: "ok" }]);
    expect((await get("GET", COMPLETIONS))[0]).toBe(405);
    expect((await get("GET", "/v2/elsewhere"))[0]).toBe(404);
  });
});

describe("a session", () => {
  it("starts by itself, is recorded token for token, and refuses calls after its end", async () => {
    const ended: SessionRecord[] = [];
    const { post, call: ask } = await start([`go ${call}`, "enough"], {
      onSession: (record) => ended.push(record),
    });
    const path = `/sessions/ep.1${COMPLETIONS}`;
    const first = request({ tools: offered, return_token_ids: true });
    const [, { choices }] = await post(path, first);
    const { message } = choices[0];
    const seen = { role: "tool", tool_call_id: message.tool_calls[0].id, content: "seen" };
    const messages = [...hello, message, seen];
    const [, second] = await post(path, { ...first, messages });
    const [status, record] = await ask("GET", "/sessions/ep.1");
    expect(status).toBe(200);
    expect(record.calls.map(({ parent }: { parent: number }) => parent)).toEqual([null, 0]);
    expect(record.calls[0].token_ids).toEqual(choices[0].token_ids);
    expect(record.calls[1].prompt_token_ids).toEqual(second.prompt_token_ids);
    expect(record.calls[1].messages.at(-1)).toEqual({
      ...{ role: "tool", content: "seen", answers: seen.tool_call_id },
    });
    expect(record.calls[0].logprobs).toHaveLength(record.calls[0].token_ids.length);
    expect((await ask("GET", "/sessions"))[1].data).toMatchObject([{ id: "ep.1", calls: 2 }]);
    expect(await ask("DELETE", "/sessions/ep.1")).toEqual([200, record]);
    expect(ended).toEqual([record]);
    for (const [gone, body] of [
      await post(path, first),
      await ask("GET", "/sessions/ep.1"),
      await post("/sessions", { id: "ep.1" }),
    ])
      expect([gone, body.error.code]).toEqual([410, "session_ended"]);
    // Others go on.
    expect((await post(`/sessions/ep.2${COMPLETIONS}`, first))[0]).toBe(200);
  });

  it("is started with a name and a seed, or gets a name", async () => {
    const seeds: (number | undefined)[] = [];
    const { post } = await start([], {
      createSession: (_, seed) => {
        seeds.push(seed);
        const sampling = { maxTokens: 9 };
        const sampler = scripted(hermes, []);
        return createSession({ sampler, tokenizer: hermes, maxContext: 99, seed: 0, sampling });
      },
    });
    expect(await post("/sessions", { id: "a", seed: 7 })).toMatchObject([201, { id: "a" }]);
    const [, { id }] = await post("/sessions", {});
    expect(id).toMatch(/^[0-9a-f-]{36}$/);
    expect(seeds).toEqual([7, undefined]);
    expect((await post("/sessions", { id: "a" }))[0]).toBe(409);
    expect((await post("/sessions", { id: "a/b" }))[0]).toBe(400);
    expect((await post("/sessions", { name: "a" }))[0]).toBe(400);
    expect((await post(`/sessions/${"x".repeat(200)}${COMPLETIONS}`, request()))[0]).toBe(400);
  });

  it("ends when nobody uses it, and makes room for others", async () => {
    const ended: string[] = [];
    const limits = { maxSessions: 1, idleMs: 40 };
    const { post } = await start([], { limits, onSession: ({ id }) => ended.push(id) });
    expect((await post("/sessions", { id: "a" }))[0]).toBe(201);
    const [status, { error }] = await post(`/sessions/b${COMPLETIONS}`, request());
    expect([status, error.code, error.type]).toEqual([
      429,
      "too_many_sessions",
      "rate_limit_error",
    ]);
    await until(() => ended.length > 0);
    expect((await post("/sessions", { id: "b" }))[0]).toBe(201);
    expect((await post(`/sessions/a${COMPLETIONS}`, request()))[0]).toBe(410);
  });

  it("keeps no more than all of them may, and calls that failed count for nothing", async () => {
    const long = "go on ".repeat(1000);
    const { post, call: ask } = await start(["on", "on", "on"], { limits: { maxKept: 150 } });
    const path = (id: string) => `/sessions/${id}${COMPLETIONS}`;
    const failing = request({ messages: [{ role: "assistant", content: "on" }] });
    for (let i = 0; i < 5; i++) expect((await post(path("a"), failing))[0]).toBe(400);
    expect((await post(path("a"), request()))[0]).toBe(200);
    expect(
      (await post(path("a"), request({ messages: [{ role: "user", content: long }] })))[1],
    ).toMatchObject({
      error: { code: "too_much_kept", type: "rate_limit_error" },
    });
    let kept = 1;
    while ((await post(path("b"), request()))[0] === 200) kept++;
    expect(kept).toBeGreaterThan(1);
    await ask("DELETE", "/sessions/a");
    expect((await post(path("b"), request()))[0]).toBe(200);
  });

  it("that ends while the model answers ends the answer too", async () => {
    const { sampler, next } = held();
    const { post, call: ask } = await start(sampler);
    const arrived = next();
    const answer = post(`/sessions/a${COMPLETIONS}`, request());
    await arrived;
    await ask("DELETE", "/sessions/a");
    expect((await answer)[0]).toBe(410);
  });
});

describe("a client", () => {
  it("that disconnects frees its place, and nothing is recorded", async () => {
    const { sampler, waiting, aborted, next } = held();
    const { url, post, call: ask, faults } = await start(sampler, { limits: { maxRequests: 2 } });
    const leaving = new AbortController();
    const both = [next(), next()];
    const other = post(`/sessions/b${COMPLETIONS}`, request());
    await both[0];
    const left = fetch(`${url}/sessions/a${COMPLETIONS}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(request({ stream: true })),
      signal: leaving.signal,
    });
    await both[1];
    expect((await post(COMPLETIONS, request()))[1].error.code).toBe("too_many_requests");
    leaving.abort();
    await expect(left).rejects.toThrow();
    await until(() => aborted() === 1);
    const arrived = next();
    // Its place is free a turn of the event loop after its sampling was aborted.
    const isRefused = ([status]: readonly [number, ...unknown[]]): boolean => status === 429;
    let third = post(COMPLETIONS, request());
    while (await Promise.race([arrived.then(() => false), third.then(isRefused)]))
      third = post(COMPLETIONS, request());
    for (const { go } of waiting) go();
    expect([(await other)[0], (await third)[0]]).toEqual([200, 200]);
    expect((await ask("GET", "/sessions/a"))[1].calls).toEqual([]);
    expect((await ask("GET", "/sessions/b"))[1].calls).toHaveLength(1);
    expect(faults).toEqual([]);
  });

  it("needs the key, which appears nowhere", async () => {
    const key = "correct horse";
    const records: SessionRecord[] = [];
    const { post, call: ask } = await start([], { key, onSession: (one) => records.push(one) });
    const path = `/sessions/a${COMPLETIONS}`;
    const wrong: Record<string, string>[] = [
      {},
      { authorization: "Bearer wrong" },
      { authorization: key },
    ];
    for (const headers of wrong) {
      const [status, { error }] = await post(path, request(), headers);
      expect([status, error.code]).toEqual([401, "invalid_api_key"]);
      expect((await ask("GET", "/sessions", headers))[0]).toBe(401);
    }
    expect((await ask("GET", "/health"))[0]).toBe(200);
    const authorization = `Bearer ${key}`;
    expect((await post(path, request(), { authorization }))[0]).toBe(200);
    await ask("DELETE", "/sessions/a", { authorization });
    expect(records[0]!.calls).toHaveLength(1);
    expect(JSON.stringify(records)).not.toContain(key);
  });

  it("that a web page sends to this machine is refused without a key", async () => {
    const { port, post } = await start([]);
    expect((await post(COMPLETIONS, request(), { "content-type": "text/plain" }))[0]).toBe(415);
    const reply = await raw(port, "GET /v1/models HTTP/1.1\r\nhost: evil.example\r\n\r\n");
    expect(reply).toMatch(/^HTTP\/1.1 403/);
  });
});

/** What the server sends to bytes of any kind, until it closes or there is an answer. */
function raw(port: number, bytes: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = "";
    const socket = connect(port, "127.0.0.1", () => socket.write(bytes));
    socket.on("data", (data) => {
      text += String(data);
      socket.end();
    });
    socket.on("close", () => resolve(text));
    socket.on("error", reject);
  });
}

describe("bad input", () => {
  it("is refused, and the server stays up", async () => {
    const { port, post, faults } = await start(["go"], { limits: { maxBodyBytes: 2 ** 20 } });
    expect((await post(COMPLETIONS, "{"))[1].error.message).toMatch(/not JSON/);
    expect((await post(COMPLETIONS, "x".repeat(10 * 2 ** 20)))[0]).toBe(413);
    const long = [{ role: "user", content: "go ".repeat(2 ** 18) }];
    const [status, { error }] = await post(COMPLETIONS, request({ messages: long }));
    expect([status, error.code]).toEqual([400, "context_length_exceeded"]);
    const longish = [{ role: "user", content: "go ".repeat(1500) }];
    expect((await post(COMPLETIONS, request({ messages: longish })))[1].error.message).toMatch(
      /has \d+ tokens, and the model reads 1024/,
    );
    const bad = { id: "x", type: "function", function: { name: "look", arguments: "{" } };
    const called = { role: "assistant", tool_calls: [bad] };
    const seen = { role: "tool", tool_call_id: "x", content: "" };
    const invalid = request({ messages: [...hello, called, seen], tools: offered });
    expect((await post(COMPLETIONS, invalid))[1].error.message).toMatch(/arguments are not JSON/);
    expect(await raw(port, "\u0000\u0001garbage\r\n\r\n")).toMatch(/^HTTP\/1.1 400/);
    expect((await post(`/sessions/%E0%A4%A${COMPLETIONS}`, request()))[0]).toBe(400);
    expect((await post(COMPLETIONS, request()))[0]).toBe(200);
    expect(faults).toEqual([]);
  });

  it("of many, equal or deep tools is refused", async () => {
    const { post, faults } = await start(["go"]);
    const tools = (names: readonly string[], parameters: object = { type: "object" }) =>
      request({
        tools: names.map((name) => ({ type: "function", function: { name, parameters } })),
      });
    const refusal = async (body: object | string) => {
      const [status, { error }] = await post(COMPLETIONS, body);
      expect(status).toBe(400);
      return error.message;
    };
    const many = Array.from({ length: 1000 }, (_, i) => `tool_${i}`);
    expect(await refusal(tools(many))).toBe("tools: expected at most 512 tools");
    expect(await refusal(tools(many.slice(0, 500)))).toMatch(/the model reads 1024/);
    expect(await refusal(tools(["look", "look"]))).toBe("tools: two tools have the same name");
    const deep = (levels: number): object =>
      levels === 0 ? {} : { type: "array", items: deep(levels - 1) };
    expect(await refusal(tools(["look"], deep(200)))).toMatch(/too deeply/);
    const bottomless = JSON.stringify(tools(["look"])).replace(
      '{"type":"object"}',
      `${'{"a":'.repeat(1e5)}1${"}".repeat(1e5)}`,
    );
    expect(await refusal(bottomless)).toMatch(/more than 500 lists or objects inside each other/);
    expect(faults).toEqual([]);
  });

  it("that comes too slowly is cut off", async () => {
    const { port, post } = await start(["go"], { limits: { headersMs: 100 } });
    expect(await raw(port, "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\n")).toMatch(
      /^HTTP\/1.1 408/,
    );
    const head = "content-type: application/json\r\ncontent-length: 100\r\n\r\n{";
    expect(
      await raw(port, `POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\n${head}`),
    ).toMatch(/^HTTP\/1.1 408/);
    expect((await post(COMPLETIONS, request()))[0]).toBe(200);
  });

  it("of a failing engine is a fault of the server, which stays up", async () => {
    let fails = true;
    const { post, faults } = await start({
      sample: (request) => {
        if (!fails) return scripted(hermes, ["go"]).sample(request);
        fails = false;
        throw new Error("out of memory at /secret/path");
      },
    });
    const [status, { error }] = await post(COMPLETIONS, request());
    expect([status, error.type]).toEqual([500, "server_error"]);
    expect(error.message).not.toContain("secret");
    expect(faults).toHaveLength(1);
    expect((await post(COMPLETIONS, request()))[0]).toBe(200);
  });

  it("of any kind in messages is answered or refused, never a fault", async () => {
    const { post, faults } = await start([]);
    const content = fc.oneof(fc.string({ unit: "binary" }), fc.constant("<|end|><tool_call>"));
    const calls = fc.array(
      fc.record({
        id: fc.constantFrom("a", "b"),
        type: fc.constant("function"),
        function: fc.record({ name: fc.constantFrom("look", "x"), arguments: fc.json() }),
      }),
      { maxLength: 2 },
    );
    const message = fc.oneof(
      fc.record({ role: fc.constantFrom("system", "user"), content }),
      fc.record({ role: fc.constant("assistant"), content, tool_calls: calls }),
      fc.record({ role: fc.constant("tool"), content, tool_call_id: fc.constantFrom("a", "b") }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(message, { maxLength: 5 }), async (messages) => {
        const [status] = await post(
          `/sessions/fuzz${COMPLETIONS}`,
          request({ messages, tools: offered }),
        );
        expect([200, 400]).toContain(status);
      }),
      { numRuns: 25 },
    );
    expect(faults).toEqual([]);
  });
});

it("answers those who wait when it stops, and ends their sessions", async () => {
  const { sampler, next } = held();
  const records: SessionRecord[] = [];
  const { post, stop } = await start(sampler, { onSession: (one) => records.push(one) });
  const arrived = next();
  const answer = post(`/sessions/a${COMPLETIONS}`, request());
  await arrived;
  await post("/sessions", { id: "b" });
  stop();
  expect((await answer)[1].error).toMatchObject({ type: "server_error", code: "stopping" });
  expect(records.map(({ id }) => id).sort()).toEqual(["a", "b"]);
});

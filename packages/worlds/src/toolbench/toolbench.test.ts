/** Against a stand-in that speaks the server's `/virtual` call: its data is not at hand. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { envChecks } from "@pawl/core/envs/conformance.js";
import type { Environment, RemoteEnv } from "@pawl/core/envs/env.js";
import { openEnvironment } from "@pawl/core/envs/open.js";
import { callText } from "@pawl/core/text/tool.js";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { says, startChatServer } from "../../../../tests/helpers/chat-server.js";
import { readQuestions, standardName } from "./questions.js";
import { verdictOf } from "./toolbench.js";

const api = (name: string, required: readonly string[] = []) => ({
  category_name: "Weather",
  tool_name: "Sky & Sea",
  api_name: name,
  api_description: "Tells things.",
  required_parameters: required.map((one) => ({
    name: one,
    type: "STRING",
    description: "",
    default: "Rome",
  })),
  optional_parameters: [{ name: "from", type: "NUMBER", description: "since", default: "" }],
  method: "GET",
});
const questions = [
  {
    query: "How warm is it in Rome?",
    query_id: 7,
    api_list: [api("Get Temperature!", ["city"]), api("Tides")],
  },
];

const folder = mkdtempSync(join(tmpdir(), "toolbench-"));
const data = join(folder, "solvable_queries");
mkdirSync(join(data, "test_instruction"), { recursive: true });
const file = join(data, "test_instruction", "G1_instruction.json");
writeFileSync(file, JSON.stringify(questions));

let received: Record<string, unknown>[] = [];
let status = 200;
let server: Server;
let address: string;
beforeAll(async () => {
  server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const body = JSON.parse(Buffer.concat(chunks).toString()) as Record<string, unknown>;
      received.push({ ...body, url: request.url });
      response.writeHead(status, { "content-type": "application/json" });
      const text = body.api_name === "tides" ? "x".repeat(2000) : "21.5 °C";
      response.end(JSON.stringify({ error: "", response: text }));
    });
  });
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  address = `http://127.0.0.1:${(server.address() as AddressInfo).port}/virtual`;
});
afterAll(() => {
  server.close();
  rmSync(folder, { recursive: true });
});
beforeEach(() => {
  [received, status] = [[], 200];
});

const open = (options: object = {}): Environment =>
  openEnvironment({
    name: "toolbench",
    data,
    server: address,
    judged: false,
    retries: 0,
    ...options,
  });
const call = (tool: string, values: object = {}): string =>
  callText({ tool, arguments: values as Record<string, unknown> });
const answer = (text: string) => call("Finish", { return_type: "give_answer", final_answer: text });

async function start(environment: Environment): Promise<RemoteEnv> {
  const env = environment.create() as RemoteEnv;
  await env.reset(environment.task("G1_instruction/7"));
  return env;
}

describe("the stand-in server", () => {
  it("gets calls as the benchmark's client makes them", async () => {
    const env = await start(open());
    expect(env.tools!().map(({ name }) => name)).toEqual([
      "get_temperature_for_sky_sea",
      "tides_for_sky_sea",
      "Finish",
    ]);
    const { observation, info } = await env.step(
      call("get_temperature_for_sky_sea", { city: "Rome", is_from: 3 }),
    );
    expect(received).toEqual([
      {
        url: "/virtual",
        category: "Weather",
        tool_name: "sky_sea",
        api_name: "get_temperature",
        tool_input: '{"city":"Rome","is_from":3}',
        strip: "",
        toolbench_key: "",
      },
    ]);
    expect([observation, info.valid]).toEqual(['{"error": "", "response": "21.5 \\u00b0C"}', true]);
  });

  it("is not asked about functions that do not exist, and long responses are cut", async () => {
    const env = await start(open());
    const unknown = await env.step(call("no_such"));
    expect(unknown).toMatchObject({ info: { valid: false }, done: false });
    expect(received).toEqual([]);
    expect((await env.step(call("tides_for_sky_sea"))).observation).toHaveLength(1024 + 3);
  });

  it("that fails breaks the episode", async () => {
    const env = await start(open());
    status = 500;
    await expect(env.step(call("tides_for_sky_sea"))).rejects.toThrow(
      /toolbench: POST .*status 500/,
    );
  });

  it("keeps the contract of environments", async () => {
    const actions = [call("tides_for_sky_sea"), answer("21.5 °C")];
    for (const check of envChecks(open(), { actions, steps: 4 }))
      await expect(check.run(), check.name).resolves.toBeUndefined();
  });
});

describe("an answer", () => {
  it.each([
    [["VERDICT: Solved"], { reward: 1, info: { success: true } }, 1],
    [["VERDICT: Unsolved"], { reward: 0, info: { success: false } }, 1],
    [["VERDICT: Unsure", "VERDICT: Unsure"], { reward: 0.5, info: { success: false } }, 2],
    [["VERDICT: Unsure", "so: Solved"], { reward: 1, info: { success: true } }, 2],
  ])("is judged: %j", async (verdicts, expected, asked) => {
    const chat = await startChatServer(...verdicts.map((one) => says(one)));
    try {
      const judge = { baseUrl: chat.baseUrl, model: "j", retries: 0 };
      const env = await start(open({ judged: true, judge }));
      await env.step(call("get_temperature_for_sky_sea", { city: "Rome" }));
      expect(await env.step(answer("It is 21.5 °C."))).toMatchObject({ done: true, ...expected });
      expect(chat.received).toHaveLength(asked);
      // Unsure about the answer, the judge sees what was done.
      const last = chat.received.at(-1)!.body.messages[0]!.content;
      expect(last.includes("get_temperature_for_sky_sea")).toBe(asked === 2);
    } finally {
      await chat.close();
    }
  });

  it("that is empty, or given up, is worth nothing; one without a type is no end", async () => {
    const env = await start(open());
    expect(await env.step(call("Finish", {}))).toMatchObject({
      done: false,
      info: { valid: false },
    });
    const up = await env.step(call("Finish", { return_type: "give_up_and_restart" }));
    expect(up).toMatchObject({ done: true, reward: 0 });
  });

  it("needs a judge that says something", () => {
    expect(verdictOf("It was not unsolved.\nVERDICT: **Solved**")).toBe("Solved");
    expect(() => verdictOf("hm")).toThrow(/the judge should end with VERDICT/);
  });
});

describe("bad input", () => {
  it("is named", () => {
    expect(() => open({ data: join(folder, "nothing") })).toThrow(/has no question files/);
    expect(() => open({ judged: true })).toThrow(/set judge\.baseUrl/);
    const judge = { baseUrl: "http://x/v1", model: "j" };
    expect(() => open({ judge })).toThrow(/contradicts judge/);
    const broken = join(folder, "broken.json");
    writeFileSync(broken, '[{"query": "x", "api_list": []}]');
    expect(() => readQuestions(broken)).toThrow(/broken\.json: 0\.api_list/);
    writeFileSync(broken, "[");
    expect(() => readQuestions(broken)).toThrow(/cannot read .*broken\.json/);
  });

  it("names are as the server's", () => {
    expect(["Get Temp!", "123 go", "__A--b__", "News, Media"].map(standardName)).toEqual([
      "get_temp",
      "get_123_go",
      "a_b",
      "news_media",
    ]);
  });
});

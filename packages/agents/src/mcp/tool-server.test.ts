import { PassThrough } from "node:stream";
import type { Env } from "@pawl/core/envs/env.js";
import { openEnvironment } from "@pawl/core/envs/open.js";
import { runCli } from "@pawl/pawl/cli/testing.js";
import { describe, expect, it } from "vitest";
import { serveTools } from "./tool-server.js";

/** What the server answers to these lines. */
async function answers(...lines: readonly (string | object)[]): Promise<unknown[]> {
  const environment = openEnvironment({ name: "desk", level: "easy" });
  const env = environment.create() as Env;
  const observation = env.reset(environment.task("train/0"));
  const input = new PassThrough();
  const output = new PassThrough();
  for (const line of lines)
    input.write(
      `${typeof line === "string" ? line : JSON.stringify({ jsonrpc: "2.0", ...line })}\n`,
    );
  input.end();
  await serveTools({ env, observation, input, output });
  const written = String(output.read() ?? "");
  return written
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line) as unknown);
}

const called = (id: number, name: string, given: object) => ({
  id,
  method: "tools/call",
  params: { name, arguments: given },
});

describe("a tool environment as an MCP server", () => {
  it("says what it is, which revision it speaks, and what is to be done", async () => {
    const [old, unknown, ping] = (await answers(
      { id: 1, method: "initialize", params: { protocolVersion: "2024-11-05" } },
      { id: 2, method: "initialize", params: { protocolVersion: "1999-01-01" } },
      { id: 3, method: "ping" },
    )) as [{ result: object }, { result: object }, object];
    expect(old.result).toMatchObject({
      protocolVersion: "2024-11-05",
      capabilities: { tools: {} },
      serverInfo: { name: "pawl" },
      instructions: expect.stringMatching(
        /^The customer .* order #\d\d\.\n\nThe customer is waiting/,
      ),
    });
    expect(unknown.result).toMatchObject({ protocolVersion: "2025-11-25" });
    expect(ping).toEqual({ jsonrpc: "2.0", id: 3, result: {} });
  });

  it("lists tools with their schemas, and answers no notification", async () => {
    const [listed, ...more] = (await answers(
      { method: "notifications/initialized" },
      { id: "a", method: "tools/list" },
    )) as [{ result: { tools: object[] } }];
    expect(more).toEqual([]);
    expect(listed.result.tools).toHaveLength(6);
    expect(listed.result.tools[0]).toMatchObject({
      name: "get_order",
      inputSchema: { type: "object", required: ["order"] },
    });
  });

  it("says what a call was worth, and nothing more once the episode is over", async () => {
    const [bad, closed, late] = await answers(
      called(1, "get_order", { order: "x" }),
      called(2, "close_case", { outcome: "done" }),
      called(3, "close_case", { outcome: "done" }),
    );
    expect(bad).toMatchObject({
      result: {
        isError: true,
        content: [{ type: "text", text: expect.stringContaining("do not fit") }],
        _meta: { "pawl/step": { valid: false, reward: 0, done: false } },
      },
    });
    expect(closed).toMatchObject({
      result: { _meta: { "pawl/step": { valid: true, reward: 0, done: true, success: false } } },
    });
    expect(late).toMatchObject({
      result: { isError: true, content: [{ text: expect.stringContaining("episode is over") }] },
    });
  });

  it("answers what it cannot read or does not know with the protocol's errors", async () => {
    const codes = (await answers(
      "{",
      "3",
      { id: 1, method: "resources/list" },
      called(2, "nothing", {}),
      { id: 3, method: "tools/call", params: { name: "get_order", arguments: [] } },
      { id: 4, method: "ping" },
    )) as { error?: { code: number } }[];
    expect(codes.map(({ error }) => error?.code)).toEqual([
      -32_700,
      -32_600,
      -32_601,
      -32_602,
      -32_602,
      undefined,
    ]);
  });
});

it("pawl serve mcp refuses an environment without tools, by name", async () => {
  const { code, stderr } = await runCli(["serve", "mcp", "--env", "household"]);
  expect([code, stderr]).toEqual([1, expect.stringMatching(/household has no tools.*served$/m)]);
  const terminal = await runCli(["serve", "mcp", "--env", "terminal"]);
  expect(terminal.stderr).toContain("as they are with --env.actions tool");
});

/** Chat models and trained agents in the commands of world models; the endpoint is a stand-in. */
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { tinyConfig } from "@pawl/training/testing.js";
import { oneRoomFlags } from "@pawl/worldmodel/testing.js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { says, startChatServer } from "../../../../tests/helpers/chat-server.js";
import { runCli } from "./testing.js";

const folder = mkdtempSync(join(tmpdir(), "pawl-wm-chat-"));
const data = join(folder, "data");
let server: Awaited<ReturnType<typeof startChatServer>>;

/** Runs a command that must succeed, and returns its JSON and what it warned of. */
async function pawl(...args: readonly string[]) {
  const { code, stdout, stderr } = await runCli(["wm", ...args, "--json"]);
  expect(stderr.replaceAll(/^(warning|.* episodes|.*: episodes).*\n/gm, "")).toBe("");
  expect(code).toBe(0);
  return { json: JSON.parse(stdout), stderr };
}

const player = () => ["--player.base-url", server.baseUrl, "--player.model", "someone"];
const chat = () => ["--chat.base-url", server.baseUrl, "--chat.model", "some-world"];
const few = ["--tasks", "2", "--step-limit", "2"];

beforeAll(async () => {
  // As an agent it looks around; as a world it says that this was a success.
  server = await startChatServer((response, request) => {
    const isAgent = request.body.model === "someone";
    says(isAgent ? "<think>hm</think><action>look</action>" : "All done. [SUCCESS]")(
      response,
      request,
    );
  });
  const made = ["wm", "data", ...oneRoomFlags, "--mix", "expert:4", "--test", "0", "--out", data];
  expect((await runCli(made)).code).toBe(0);
});
afterAll(() => server.close());

describe("wm eval consistency", () => {
  it("takes a chat model as agent and one as world", async () => {
    const args = [...oneRoomFlags, ...few, "--policies", "chat,expert", ...player(), ...chat()];
    const shown = ["--examples", data, "--shots", "2"];
    const { json, stderr } = await pawl("eval", "consistency", ...args, ...shown);
    expect(json.model).toBe("some-world");
    expect(json.policies.map((one: { policy: string }) => one.policy)).toEqual(["chat", "expert"]);
    // Looking around reaches no goal in the world, but the model says that it does.
    expect(json.policies[0]).toMatchObject({ looksInside: false, real: 0, wm: 1, w2r: 0 });
    expect(stderr).toMatch(/chat: its prompts list the possible actions/);
    const asked = server.received.find(({ body }) => body.model === "some-world")!.body.messages;
    expect(asked[0]!.content).toMatch(/Example 2\nGoal: /);
    expect(asked.at(-1)).toEqual({ role: "user", content: "look" });
  });

  it("takes a run as the agent", async () => {
    const agent = join(folder, "agent");
    const path = join(folder, "agent.json");
    const warmStart = { episodes: 1, sft: { epochs: 1 } };
    const short = tinyConfig({ updates: 0, warmStart, evaluation: { every: 0 } });
    writeFileSync(path, JSON.stringify(short));
    expect((await runCli(["train", "--config", path, "--out", agent])).code).toBe(0);
    const args = [...oneRoomFlags, ...few, "--policies", agent, ...chat(), "--shots", "0"];
    const { json } = await pawl("eval", "consistency", ...args);
    expect(json.policies[0]).toMatchObject({ policy: agent, looksInside: false, wm: 1 });
    const engine = ["--engine.threads", "1"];
    const shop = ["--env.data", "made-up", "--env.products", "100"];
    const verified = ["eval", "verifier", ...shop, "--policy", agent, "--budgets", "1", ...engine];
    const { json: checked } = await pawl(...verified, ...few);
    expect(checked).toMatchObject({ policy: agent, model: "exact" });
    expect(checked.budgets[0].episodes).toBe(2);
  });
});

it("wm eval verifier asks a chat model about a chat model's purchases", async () => {
  const shop = ["--env.data", "made-up", "--env.products", "100", ...few, "--budgets", "3"];
  const args = ["eval", "verifier", ...shop, "--policy", "random", ...chat(), "--shots", "0"];
  const { json } = await pawl(...args, "--step-limit", "15", "--tasks", "10");
  expect(json.model).toBe("some-world");
  const [{ checks, vetoes, irreversible }] = json.budgets;
  expect(checks).toBeGreaterThan(0);
  expect({ checks, vetoes }).toEqual({ checks: irreversible, vetoes: 0 });
  const agent = await pawl("eval", "verifier", ...shop, "--policy", "chat", ...player());
  expect(agent.json.budgets[0]).toMatchObject({ episodes: 2, irreversible: 0, meanSteps: 2 });
});

it("wm data records what a chat model did", async () => {
  const out = join(folder, "played");
  const mix = ["--mix", "chat:2", ...player(), "--step-limit", "2", "--test", "0"];
  const { json } = await pawl("data", ...oneRoomFlags, ...mix, "--out", out);
  expect(json.train.household).toMatchObject({ trajectories: 2 });
  const [line] = readFileSync(join(out, "train.jsonl"), "utf8").split("\n");
  expect(JSON.parse(line!)).toMatchObject({ policy: "chat" });
});

it.each<[readonly string[], () => readonly string[], string]>([
  [["eval", "consistency"], () => [], "give the world model: --model RUN, or --chat"],
  [["eval", "consistency"], chat, "--examples: a chat model is shown 3 trajectories"],
  [["eval", "consistency", "--model", "x"], chat, "give one world model: --model x or --chat"],
  [
    ["eval", "consistency", "--model", "x", "--examples", data],
    () => [],
    "--examples are shown to a chat model",
  ],
  [["eval", "consistency", "--model", "x"], player, "the policies are expert, epsilon=0.3"],
  [["eval", "verifier", "--policy", "chat"], () => [], "give it with --player.base-url"],
  [
    ["eval", "verifier", "--policy", "chat", "--player.prompting", "reflexion"],
    player,
    "--player.prompting: reflexion learns from failed attempts",
  ],
])("refuses %j", async (args, more, message) => {
  const { code, stderr } = await runCli(["wm", ...args, ...more()]);
  expect(stderr).toContain(message);
  expect(code).toBe(2);
});

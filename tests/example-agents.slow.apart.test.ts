/** The examples of agents, as their reader would use them: trained, evaluated, replayed. */
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";

const folder = mkdtempSync(join(tmpdir(), "pawl-agents-"));
afterAll(() => rmSync(folder, { recursive: true }));
const env = { ...process.env, XDG_CACHE_HOME: join(folder, "cache") };
const pawl = (...args: string[]) =>
  spawnSync(process.execPath, ["dist/lib/main.js", ...args], { encoding: "utf8", env });

const small = [
  ...["--engine.threads", "1", "--updates", "2", "--groups", "1", "--group-size", "2"],
  ...[
    "--max-tokens",
    "8",
    "--model.max-context",
    "4096",
    "--evaluation.every",
    "0",
    "--gradients.every",
    "0",
  ],
];

describe.each([
  ["agent.ts", "clerk"],
  ["openai-agent.ts", "rhymer"],
  ["desk-agent.ts", "desk-agent"],
  ["terminal-agent.ts", "terminal-agent"],
])("examples/%s", (file, name) => {
  const run = join(folder, name);
  const agent = ["--agent", join("examples", file)];

  it("is trained for two updates, with a model from scratch", () => {
    const trained = pawl("train", ...agent, ...small, "--out", run);
    expect(trained.status, trained.stderr).toBe(0);
    expect(trained.stdout + trained.stderr).toContain("update 2/2");
    const manifest = JSON.parse(readFileSync(join(run, "manifest.json"), "utf8"));
    expect(manifest.config).toMatchObject({ env: { name }, prompt: { style: "chat" } });
    expect(manifest.config).not.toHaveProperty("agent");
    expect(manifest.plugins[0]).toMatchObject({ path: expect.stringMatching(`${file}$`) });
    const lines = readFileSync(join(run, "metrics.jsonl"), "utf8").trim().split("\n");
    const last = JSON.parse(lines.at(-1)!) as Record<string, number>;
    expect(last).toMatchObject({ update: 1, "train.broken": 0 });
    expect(last["policy.tokens"]).toBeGreaterThan(0);
  });

  it("is loaded by itself to replay and to evaluate the run", () => {
    const replayed = pawl("replay", run, "--no-losses");
    expect(replayed.stdout, replayed.stderr).toMatch(/2 updates, \d+ numbers compared, 0 diverged/);
    const evaluated = pawl(
      ...["eval", "--checkpoint", run, "--split", "test", "--tasks", "1", "--json"],
      ...["--out", join(folder, `${name}-test`)],
    );
    expect(evaluated.status, evaluated.stderr).toBe(0);
    expect(JSON.parse(evaluated.stdout)).toMatchObject({ split: "test", episodes: 1 });
  });
});

it("the model of an agent's run is served", async () => {
  const args = ["dist/lib/main.js", "serve", "model", join(folder, "clerk"), "--port", "0"];
  const server = spawn(process.execPath, args, { env });
  const said = new Promise<string>((resolve) => {
    let text = "";
    const hear = (more: Buffer) => {
      text += String(more);
      if (text.includes("http://")) resolve(text);
    };
    server.stdout.on("data", hear);
    server.stderr.on("data", hear);
    server.once("exit", () => resolve(text));
  });
  const address = /http:\/\/[\d.:]+/.exec(await said)?.[0];
  expect(address, await said).toBeDefined();
  const models = await (await fetch(`${address}/v1/models`)).json();
  server.kill("SIGINT");
  expect(models).toMatchObject({ data: [{ id: "clerk" }] });
});

it("an agent needs a model to be evaluated, and is no world to play in", () => {
  const agent = ["--agent", join("examples", "agent.ts")];
  const without = pawl("eval", ...agent);
  expect(without.stderr).toContain("agent clerk asks a model: give one with --checkpoint");
  const file = pawl("train", "--agent");
  expect(file.stderr).toContain("--agent: expected a file");
  const played = pawl("play", "--plugin", join("examples", "agent.ts"), "--env", "clerk");
  expect(played.stderr).toContain("agent clerk is a program that asks the model itself");
  expect(played.status).toBe(1);
});

import { existsSync, mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { oneRoomFlags } from "../worldmodel/testing.js";
import { runCli } from "./testing.js";

const folder = mkdtempSync(join(tmpdir(), "pawl-wm-cli-"));
const data = join(folder, "data");
const model = join(folder, "model");

/** Runs a command that must succeed, and returns its output. */
async function pawl(...args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await runCli(["wm", ...args]);
  expect(stderr.replaceAll(/^(\d+:\d\d {2}|warning: ).*\n/gm, "")).toBe("");
  expect(code).toBe(0);
  return stdout;
}

beforeAll(async () => {
  await pawl(
    ...["data", ...oneRoomFlags, "--mix", "expert:12,epsilon=0.5:4", "--step-limit", "8"],
    ...["--test", "0.3", "--out", data],
  );
  await pawl(
    ...["train", "--data", data, "--model.start", "tiny", "--model.max-context", "192"],
    ...["--epochs", "1", "--batch", "8", "--engine.threads", "1", "--evaluation.every", "0"],
    ...["--out", model],
  );
});

it("has help", async () => {
  const help = await pawl("--help");
  expect(help).toContain("pawl wm eval consistency  Real, WM, W2R");
  expect(help).toContain("pawl wm train --data data/household");
  expect(await pawl("eval", "--help")).not.toContain("wm train");
  const { code, stderr } = await runCli(["wm", "eval", "fidelty"]);
  expect(stderr).toContain("pawl wm eval needs one of: fidelity, consistency, verifier");
  expect(code).toBe(2);
  expect((await runCli(["wm"])).stderr).toContain("pawl wm needs one of: data, train, eval");
});

describe("pawl wm data", () => {
  it("prints statistics, exports chat JSON and reads it back", async () => {
    const chat = join(folder, "chat");
    const table = await pawl("data", "--from", data, "--format", "sharegpt", "--out", chat);
    expect(table).toMatch(/^household +train +\d+/m);
    expect(existsSync(join(chat, "dataset_info.json"))).toBe(true);
    const again = join(folder, "again");
    const files = ["train.json", "test.json"].map((file) => join(chat, file)).join(",");
    const json = JSON.parse(await pawl("data", "--from", files, "--out", again, "--json"));
    expect(json.train.household.trajectories + json.test.household.trajectories).toBe(16);
    expect(json.leftOut).toEqual({});
  });

  it("takes the episodes of a run, within a budget", async () => {
    const run = join(folder, "run");
    await runCli(["rollout", ...oneRoomFlags, "--groups", "3", "--group-size", "2", "--out", run]);
    const out = join(folder, "of-run");
    const budget = ["--budget", "household=4", "--test", "0"];
    const json = JSON.parse(await pawl("data", "--from", run, ...budget, "--out", out, "--json"));
    expect(json.train.household).toMatchObject({ trajectories: 4, withContext: 4 });
  });

  it.each([
    [["--out", "x"], "give --mix, --from, or both"],
    [
      ["--mix", "expert", "--out", "x"],
      'for example expert:500, epsilon=0.3:200 or runs/…:100, got "expert"',
    ],
    [["--mix", "nobody:3", "--out", "x"], '"nobody" is not a policy'],
    [["--mix", "expert:1", "--out", "recipes"], "--out: recipes is not empty"],
    [["--from", "nowhere", "--out", "x"], "nowhere does not exist"],
  ])("refuses %j", async (args, message) => {
    const { code, stderr } = await runCli(["wm", "data", ...args]);
    expect(stderr).toContain(message);
    expect(stderr).not.toContain("    at ");
    expect(code).toBeGreaterThan(0);
  });
});

describe("pawl wm eval", () => {
  it("fidelity prints and writes scores", async () => {
    const out = join(folder, "results", "fidelity.json");
    const args = ["--model", model, "--data", data, "--trajectories", "2", "--max-tokens", "16"];
    const table = await pawl(
      ...["eval", "fidelity", ...args, "--engine.threads", "1", "--out", out, "--mistakes", "3"],
    );
    expect(table).toMatch(/^turns +number +exact match +word F1/);
    expect(table).toMatch(/^all +\d+/m);
    // A barely trained model gets nearly everything wrong.
    expect(table).toMatch(/, step \d+: .+\n {2}world {2}.+\n {2}model {2}.+/);
    const { all, trajectories, mistakes } = JSON.parse(readFileSync(out, "utf8"));
    expect(mistakes).toHaveLength(3);
    expect(mistakes[0].predicted.observation).not.toBe(mistakes[0].real.observation);
    expect(trajectories).toBe(2);
    expect(all.exactMatch).toBeGreaterThanOrEqual(0);
    const neither = await runCli(["wm", "eval", "fidelity", "--data", data]);
    expect(neither.stderr).toContain("give either --model or --chat");
  });

  it("consistency prints Real, WM, W2R and CR", async () => {
    const flags = [
      "--tasks",
      "4",
      "--step-limit",
      "6",
      "--engine.threads",
      "1",
      "--max-tokens",
      "16",
    ];
    const args = ["--model", model, ...oneRoomFlags, ...flags, "--policies", "expert,random"];
    const out = join(folder, "consistency.json");
    const table = await pawl("eval", "consistency", ...args, "--out", out);
    expect(table).toMatch(/^expert \* +100\.0 % \(51–100\)/m);
    const { policies, cases } = JSON.parse(readFileSync(out, "utf8"));
    expect(policies.map((one: { policy: string }) => one.policy)).toEqual(["expert", "random"]);
    expect(policies[0]).toMatchObject({ real: 1, broken: 0, looksInside: true });
    expect(cases.random).toHaveLength(4);
  });

  it("verifier sweeps budgets with exact predictions", async () => {
    const shop = ["--env.data", "made-up", "--env.products", "100"];
    const args = [...shop, "--policy", "random", "--tasks", "10", "--budgets", "0,2"];
    const json = JSON.parse(await pawl("eval", "verifier", ...args, "--json"));
    expect(json.budgets.map((one: { budget: number }) => one.budget)).toEqual([0, 2]);
    expect(json.budgets[0]).toMatchObject({ checks: 0, episodes: 10 });
    const { stderr } = await runCli([
      ...["wm", "eval", "verifier", "--env", "household", "--policy", "expert"],
      ...["--tasks", "2", "--budgets", "2"],
    ]);
    expect(stderr).toContain("no irreversible action was taken");
  });
});

it.each([
  [["train"], "--data: required, but not given"],
  [["eval", "consistency", "--model", "nowhere"], "nowhere holds no model"],
])("pawl wm %j is rejected with a reason", async (args, message) => {
  const { code, stderr } = await runCli(["wm", ...args]);
  expect(stderr).toContain(message);
  expect(stderr).not.toContain("    at ");
  expect(code).toBeGreaterThan(0);
});

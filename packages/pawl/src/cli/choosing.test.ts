/** Choosing before acting, by command; `packages/core/src/rollout/choice` tests how it chooses. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Environment } from "@pawl/core/envs/env.js";
import { openEnvironment } from "@pawl/core/envs/open.js";
import { readManifest } from "@pawl/core/runs/manifest.js";
import { afterAll, expect, it } from "vitest";
import { refuseChoosing } from "./choosing.js";
import { runCli } from "./testing.js";

const parent = mkdtempSync(join(tmpdir(), "pawl-choosing-"));
afterAll(() => rmSync(parent, { recursive: true, force: true }));

const START = "examples/try-start";
const model = ["--checkpoint", START, "--temperature", "1"];

it("plays groups with chosen actions, and records what was expected of each", async () => {
  const out = join(parent, "chosen");
  const { code, stdout, stderr } = await runCli([
    ...["rollout", ...model, "--split", "test_unseen", "--groups", "2", "--group-size", "2"],
    ...["--candidates", "4", "--choose", "self", "--choose.beta", "1", "--choose.tasks", "4"],
    ...["--step-limit", "4", "--out", out],
  ]);
  expect(stderr).not.toMatch(/error/);
  expect(code).toBe(0);
  expect(stdout).toMatch(/there was a choice at .* of \d+ steps\. Tokens a step: /);
  expect(stdout).toMatch(/of \d+ candidates .* would have been refused\. Foreseen /);
  expect(readManifest(out).config).toMatchObject({
    candidates: 4,
    choose: { name: "self", beta: 1 },
  });
  const shown = (await runCli(["show", out, "--json"])).stdout.trim().split("\n");
  const steps = shown.flatMap((line) => JSON.parse(line).steps);
  const contested = steps.filter(({ candidates }) => candidates.length > 1);
  expect(contested.length).toBeGreaterThan(0);
  for (const { action, candidates } of contested) {
    const votes = candidates.reduce((sum: number, one: { votes: number }) => sum + one.votes, 0);
    expect(votes).toBe(4);
    expect(candidates.find((one: { chosen?: true }) => one.chosen).action).toBe(action);
  }
});

it.each([
  [["--choose", "self", "--candidates", "4"], "choose.split: β would be chosen on train"],
  [
    ["--tasks", "valid_seen/0,test_unseen/1", "--candidates", "4", "--choose", "self"].concat(
      "--choose.split",
      "test_unseen",
    ),
    "β would be chosen on test_unseen, which is reported",
  ],
  [["--temperature", "0", "--candidates", "4"], "at temperature 0 all would be the same action"],
  [["--choose", "vote"], "it needs candidates above 1"],
  [["--candidates", "1", "--choose", "exact"], "it needs candidates above 1"],
])("refuses to play %j", async (args, message) => {
  const { code, stderr } = await runCli(["rollout", ...model, ...args]);
  expect(stderr).toContain(message);
  expect(code).toBeGreaterThan(0);
});

it("refuses to try actions in worlds that cannot be copied, and only that", () => {
  const household = openEnvironment({ name: "household" });
  const far = { ...household, name: "far", create: () => ({ close: async () => undefined }) };
  const refuse = (name: "vote" | "exact" | "self", environment = far as unknown as Environment) =>
    refuseChoosing(
      { candidates: 4, temperature: 1, choose: name === "self" ? { name, tasks: 4 } : { name } },
      environment,
      ["test_unseen"],
    );
  expect(() => refuse("exact")).toThrow("worlds of far cannot be copied: use vote, self or model");
  refuse("vote");
  refuse("self");
  refuse("exact", household);
  const program = { ...household, name: "mine", policy: () => undefined } as unknown as Environment;
  expect(() => refuse("vote", program)).toThrow("episodes of mine are played by a program");
});

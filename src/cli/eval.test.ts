import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { createTally } from "../rollout/tally.js";
import { evaluationJson, evaluationTable } from "./evaluation-table.js";
import { runCli } from "./testing.js";

const folder = mkdtempSync(join(tmpdir(), "pawl-eval-"));

it("plays each task once and prints success by type with intervals", async () => {
  const out = join(folder, "expert");
  const { code, stdout } = await runCli([
    "eval",
    ...["--split", "valid_unseen", "--tasks", "12", "--out", out],
  ]);
  expect(code).toBe(0);
  expect(stdout).toMatch(/task type +tasks +success +95 % interval +steps +invalid +broken/);
  expect(stdout).toMatch(/^all +12 +100\.0 % +75\.8 – 100\.0 %/m);
  const runs = await runCli(["runs", "--dir", folder]);
  expect(runs.stdout).toMatch(/expert +eval +done .* 12 +100\.0 %/);
});

it("plays the same tasks with every seed", async () => {
  const tasksOf = async (seed: string) => {
    const out = join(folder, `seed-${seed}`);
    await runCli([
      "eval",
      ...["--policy", "random", "--tasks", "3", "--step-limit", "2", "--seed", seed],
      ...["--out", out],
    ]);
    const { stdout } = await runCli(["show", out, "--json"]);
    return stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line).task.id);
  };
  expect(await tasksOf("1")).toEqual(["valid_seen/0", "valid_seen/1", "valid_seen/2"]);
  expect(await tasksOf("2")).toEqual(["valid_seen/0", "valid_seen/1", "valid_seen/2"]);
});

it.each([
  [["--split", "nowhere"], 'household has no split "nowhere"'],
  [["--checkpoint", "nowhere"], "nowhere holds no model: expected a run folder"],
  [["--checkpoint", "src", "--policy", "random"], "src holds no model"],
  [["--tasks", "0"], "--tasks: expected at least 1"],
])("refuses %j", async (args, message) => {
  const { code, stderr } = await runCli(["eval", ...args]);
  expect(stderr).toContain(message);
  expect(stderr).not.toContain("    at ");
  expect(code).toBeGreaterThan(0);
});

it("counts broken episodes separately, and gives no rate if nothing was played", () => {
  const tally = createTally();
  const task = { id: "t/0", type: "pick", split: "t" };
  const base = {
    task,
    group: 0,
    attempt: 0,
    seed: 0,
    policy: "p",
    goal: "",
    firstObservation: "",
    steps: [],
    return: 0,
    success: false,
  };
  tally.add({ ...base, stop: "broken", error: "gone" });
  expect(evaluationTable(tally).at(-1)).toMatch(/^all +0 +– +– +– +– +1$/);
  expect(evaluationJson(tally)).toEqual({
    episodes: 0,
    broken: 1,
    byType: { pick: { episodes: 0, broken: 1 } },
  });
});

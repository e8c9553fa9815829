import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openEnvironment } from "@pawl/core/envs/open.js";
import { createTally } from "@pawl/core/rollout/tally.js";
import { evaluationTasks } from "@pawl/core/train/evaluate.js";
import { expect, it } from "vitest";
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
  const runs = await runCli(["runs", folder]);
  expect(runs.stdout).toMatch(/expert +eval +done .* household .* 100\.0 %/);
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
  expect(await tasksOf("1")).toEqual(["valid_seen/297", "valid_seen/856", "valid_seen/370"]);
  expect(await tasksOf("2")).toEqual(["valid_seen/297", "valid_seen/856", "valid_seen/370"]);
});

it("writes a card with what was played, and compares two by their tasks", async () => {
  const play = (policy: string, tasks = "12") =>
    runCli([
      "eval",
      ...["--policy", policy, "--split", "valid_unseen", "--tasks", tasks],
      ...["--out", join(folder, `${policy}-${tasks}`)],
    ]);
  const [random] = [await play("random"), await play("seeker"), await play("seeker", "8")];
  expect(random.stdout).toMatch(
    /^household\/valid_unseen:12-shuffled: 12 tasks, sha256 [0-9a-f]{12}…$/m,
  );
  const card = JSON.parse(readFileSync(join(folder, "random-12", "card.json"), "utf8"));
  expect(card).toMatchObject({
    player: "random",
    command: expect.stringMatching(/^pawl eval --policy random --split valid_unseen --tasks 12/),
    protocol: { policy: { name: "random" }, stepLimit: 50, trials: 1, seed: 0 },
  });
  const played = evaluationTasks(openEnvironment({ name: "household" }), "valid_unseen", {
    tasks: 12,
  });
  expect(card.outcomes.map((one: { task: string }) => one.task)).toEqual(
    played.map(({ id }) => id),
  );
  const [a, b] = [join(folder, "random-12"), join(folder, "seeker-12")];
  const compared = await runCli(["eval", "--compare", a, b]);
  expect(compared.stdout).toMatch(/B is better than A: \+\d/);
  expect(compared.stdout).toContain("McNemar's exact test");
  const json = JSON.parse((await runCli(["eval", "--compare", `${a},${b}`, "--json"])).stdout);
  expect(json).toMatchObject({ verdict: "better", tasks: 12, caveats: [] });
  const refused = await runCli(["eval", "--compare", a, join(folder, "seeker-8")]);
  expect([refused.code, refused.stderr]).toEqual([
    1,
    expect.stringMatching(/cannot be compared: one is of household\/valid_unseen:12-shuffled/),
  ]);
});

it.each([
  [["--compare", "nowhere"], "--compare: expected two evaluations"],
  [
    ["--compare", "nowhere", "recipes"],
    "nowhere does not exist: expected a run folder of pawl eval",
  ],
  [["--compare", "recipes", "recipes"], "recipes has no card.json"],
  [["--compare", "a", "b", "--split", "train"], "unknown option --split"],
  [["runs/x"], 'unexpected "runs/x": a model is given with --checkpoint'],
  [["--split", "nowhere"], 'household has no split "nowhere"'],
  [["--checkpoint", "nowhere"], "nowhere holds no model: expected a run folder"],
  [["--checkpoint", "recipes", "--policy", "random"], "recipes holds no model"],
  [["--candidates", "8"], "8 would change nothing: it needs a model: checkpoint"],
  [["--choose", "vote"], "needs candidates above 1"],
  [["--candidates", "0"], "--candidates: expected at least 1"],
  [["--tasks", "0"], "--tasks: expected at least 1"],
  [["--trials", "0"], "--trials: expected at least 1"],
  [
    [
      ...["--policy", "chat", "--policy.base-url", "http://127.0.0.1:1/v1", "--policy.model", "m"],
      ...["--policy.prompting", "reflexion"],
    ],
    "reflexion learns from failed attempts at the same task, and there is one attempt: set --trials",
  ],
])("refuses %j", async (args, message) => {
  const { code, stderr } = await runCli(["eval", ...args]);
  expect(stderr).toContain(message);
  expect(stderr).not.toContain("    at ");
  expect(code).toBeGreaterThan(0);
});

it("says how many tasks were solved within each number of attempts", () => {
  const tally = createTally();
  const outcomes = [
    [false, true, false],
    [true, false, false],
    [false, false, false],
    [undefined, false, true],
    [undefined, undefined, undefined],
  ];
  // The order in which attempts end does not matter.
  for (const [group, attempts] of outcomes.entries())
    for (const [attempt, success] of [...attempts.entries()].reverse())
      tally.add({
        task: { id: "t/0", type: "pick", split: "t" },
        ...{ group, attempt, seed: 0, policy: "p", goal: "", firstObservation: "", steps: [] },
        return: 0,
        success: success === true,
        stop: success === undefined ? "broken" : "done",
      });
  // The fourth task has two attempts that count, so pass^3 is not known.
  const passAll = [(1 / 3 + 1 / 3 + 0 + 1 / 2) / 4, 0];
  expect(tally.attempts).toEqual({ tasks: 4, solvedWithin: [1, 2, 3], passAll });
  const lines = evaluationTable(tally);
  expect(lines[0]).toMatch(/^task type +episodes +success +steps/);
  expect(lines).toContain(
    "solved within 1, 2, 3 attempts: 25.0 %, 50.0 %, 75.0 % of 4 tasks (95 % interval of the last: 30.1 – 95.4 %)",
  );
  expect(lines).toContain("solved in all of 1, 2 attempts (pass^k): 29.2 %, 0.0 %");
  const json = evaluationJson(tally);
  expect(json.passAll).toEqual(passAll);
  expect(json.solvedWithin).toEqual([0.25, 0.5, 0.75]);
  expect(json).not.toHaveProperty("interval");
});

it("estimates the chance of k successes in a row from n attempts", () => {
  const tally = createTally();
  for (const success of [true, false, true, true])
    tally.add({
      task: { id: "t/0", type: "pick", split: "t" },
      ...{ group: 0, attempt: 0, seed: 0, policy: "p", goal: "", firstObservation: "", steps: [] },
      ...{ return: 0, success, stop: "done" },
    });
  // Of the 6 pairs of attempts 3 are both successes, of the 4 triples 1.
  const [one, two, three, four] = tally.attempts.passAll;
  expect([one, two]).toEqual([0.75, 0.5]);
  expect(three).toBeCloseTo(0.25, 12);
  expect(four).toBe(0);
});

it("plays each task as often as --trials says", async () => {
  const args = ["--policy", "random", "--tasks", "2", "--trials", "3", "--json"];
  const { code, stdout } = await runCli(["eval", ...args, "--out", join(folder, "trials")]);
  expect(code).toBe(0);
  const { episodes, solvedWithin } = JSON.parse(stdout);
  expect([episodes, solvedWithin.length]).toEqual([6, 3]);
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
  const lines = evaluationTable(tally);
  expect(lines.find((line) => line.startsWith("all"))).toMatch(/^all +0 +– +– +– +– +1$/);
  expect(lines.at(-1)).toBe("  1 × gone");
  expect(evaluationJson(tally)).toEqual({
    episodes: 0,
    broken: 1,
    brokenBecause: { gone: 1 },
    byType: { pick: { episodes: 0, broken: 1 } },
  });
});

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { saveCheckpoint } from "@pawl/core/runs/checkpoints.js";
import { createRun, openRun } from "@pawl/core/runs/run-folder.js";
import { successInterval } from "@pawl/core/success-interval.js";
import { afterAll, expect, it } from "vitest";
import { laptop } from "../../../../recipes/laptop.js";
import { quick } from "../../../../recipes/quick.js";
import { factsOf } from "./run-facts.js";
import { changedSettings } from "./run-recipe.js";
import { runCli } from "./testing.js";

const parent = mkdtempSync(join(tmpdir(), "pawl-facts-"));
afterAll(() => rmSync(parent, { recursive: true, force: true }));
const fail = (message: string): never => {
  throw new Error(message);
};
const folder = join(parent, "run");

it("tells environment, model, updates, evaluations, duration, end and changed settings", async () => {
  const config = { ...laptop, updates: 3, env: { ...laptop.env, rooms: 1, noise: "all" } };
  const run = createRun({ folder, kind: "train", seed: 4, config }, fail);
  run.recordMetrics({ update: -1, "eval.a.success": 0.1, "eval.b.success": 0.3 });
  run.recordMetrics({ update: 0, "train.success": 0.9 });
  run.recordMetrics({ update: 1, "eval.a.success": 0.6, "eval.b.success": 0.8 });
  await saveCheckpoint(folder, { updates: 2, optimizerSteps: 9, success: 0.7 }, async () => {});
  run.recordMetrics({
    ...{ update: 2, "eval.a.success": 0.9, "eval.a.episodes": 7 },
    ...{ "eval.b.success": 0.5, "eval.b.episodes": 100, "eval.b.success.pick": 0.1 },
  });
  const facts = factsOf(openRun(folder, fail));
  expect(facts).toMatchObject({
    environment: "household",
    model: "tiny",
    updates: { done: 3, all: 3 },
    headline: {
      success: 0.5,
      of: "eval.b.success",
      interval: successInterval({ successes: 50, episodes: 100 }),
    },
    best: { success: 0.8, update: 1, folder: join(folder, "checkpoints", "000002") },
    ended: "running now",
  });
  run.finish("done");
  expect(factsOf(openRun(folder, fail))).toMatchObject({
    ended: "done",
    seconds: expect.any(Number),
  });
  // Also those that the recipe leaves at their defaults.
  expect(changedSettings(openRun(folder, fail))).toEqual([
    "env.rooms 1 (recipe: 2)",
    'env.noise "all" (recipe: "off")',
    "updates 3 (recipe: 105)",
  ]);
  const other = join(parent, "quick");
  createRun(
    { folder: other, kind: "train", seed: 0, config: { ...quick, updates: 9 } },
    fail,
  ).finish("done");
  expect(changedSettings(openRun(other, fail))).toEqual(["updates 9 (recipe: 36)"]);
  // A run that says which recipe it was made with is not compared with another, however near.
  for (const [recipe, changed] of [
    ["recipes/laptop.ts", expect.arrayContaining(["updates 9 (recipe: 105)"])],
    ["recipes/quick.ts", ["updates 9 (recipe: 36)"]],
  ] as const) {
    const told = mkdtempSync(join(tmpdir(), "pawl-facts-"));
    const config = { ...quick, updates: 9 };
    createRun({ folder: told, kind: "train", seed: 0, config, recipe }, fail).finish("done");
    expect(changedSettings(openRun(told, fail))).toEqual(changed);
    rmSync(told, { recursive: true });
  }
  const runs = (await runCli(["runs", parent])).stdout;
  expect(runs).toMatch(
    /run +train +done .* household +tiny +3\/3 +50\.0 % \(40\.4 to 59\.6\) b +80\.0 %/,
  );
  const shown = (await runCli(["show", folder])).stdout;
  expect(shown).toMatch(
    /evaluation +50\.0 % \(40\.4 to 59\.6\) b at last, 80\.0 % at best, after update 2: .*000002/,
  );
  expect(shown).toContain("env.rooms 1 (recipe: 2)");
});

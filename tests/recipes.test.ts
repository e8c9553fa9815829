/** The recipes: each is a valid configuration, and runs at small scale. */
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { alfworldScratch } from "../recipes/alfworld-scratch.js";
import { alfworldScratchPaw } from "../recipes/alfworld-scratch-paw.js";
import { laptop } from "../recipes/laptop.js";
import paperAlfworld from "../recipes/paper-alfworld.js";
import paperSearch from "../recipes/paper-search.js";
import paperWebshop from "../recipes/paper-webshop.js";
import { warmStart } from "../recipes/warm-start.js";
import { jobsOf } from "../src/bench/matrix.js";
import { comparisonOptions } from "../src/bench/options.js";
import { GAMES, officialDataThere, unpacked } from "../src/envs/alfworld/fixtures/official.js";
import { findEnvKind } from "../src/envs/registry.js";
import { openRun } from "../src/runs/run-folder.js";
import { trainConfig } from "../src/train/config.js";
import { trainRun } from "../src/train/run.js";
import { worldTrainConfig } from "../src/worldmodel/config.js";

const recipes = { laptop, alfworldScratch, paperAlfworld, paperWebshop, paperSearch };

describe.each(Object.entries(recipes))("%s", (_, recipe) => {
  it("is accepted by the schema of training", () => {
    const config = trainConfig(findEnvKind(recipe.env.name)).parse(recipe);
    expect(config.paw).toMatchObject({ alpha: 0.75, rho: 0.2, loss: "cmae", lambda: "adaptive" });
    expect(config.groups * config.groupSize).toBeGreaterThanOrEqual(128);
  });
});

it("warm-start is accepted by the schemas of both its parts", () => {
  const world = worldTrainConfig.parse({ ...warmStart.world, data: ["data"] });
  expect(world.optimizer).toMatchObject({ schedule: "cosine", learningRate: 2e-3 });
  const train = trainConfig(findEnvKind("household")).parse(warmStart.train);
  expect(train.warmStart.episodes).toBeLessThan(laptop.warmStart.episodes);
});

it("alfworld-scratch-paw is accepted by the schema of the comparison", () => {
  const options = comparisonOptions(findEnvKind("alfworld")).parse(alfworldScratchPaw);
  expect(new Set(jobsOf(options).map((job) => job.arm))).toEqual(
    new Set(["grpo", "grpo+paw", "gigpo", "gigpo+paw"]),
  );
});

/** Trains with a recipe, scaled down to seconds on two cores, and checks the record. */
async function runCutDown(recipe: { env: { name: string } }, env: Record<string, unknown>) {
  const folder = join(mkdtempSync(join(tmpdir(), "pawl-recipe-")), "run");
  const config = trainConfig(findEnvKind(recipe.env.name)).parse({
    ...recipe,
    env: { ...recipe.env, ...env },
    model: { start: "tiny", maxContext: 1536 },
    prompt: { style: "compact" },
    warmStart: { episodes: 8, sft: { epochs: 1 } },
    maxTokens: 8,
    stepLimit: 3,
    groups: 2,
    groupSize: 2,
    updates: 1,
    evaluation: { every: 0 },
  });
  await trainRun(config, { folder });
  const run = openRun(folder, expect.unreachable);
  expect(run.manifest.status).toBe("done");
  expect([...run.episodes()]).toHaveLength(4);
  expect(run.metrics().at(-1)).toHaveProperty(["world.loss"]);
}

describe("at small scale, end to end", () => {
  it("paper-webshop runs on a synthetic catalogue", () =>
    runCutDown(paperWebshop, { data: "made-up", products: 200 }));

  it("paper-search runs in the synthetic world", () => runCutDown(paperSearch, { topk: 1 }));

  const skipped = officialDataThere ? "" : " (skipped: no official games next to the project)";
  it.skipIf(!officialDataThere)(`paper-alfworld runs on the official games${skipped}`, () =>
    runCutDown(paperAlfworld, { data: unpacked(GAMES) }),
  );
});

it("a recipe without its model is refused before a run is created", async () => {
  const folder = join(mkdtempSync(join(tmpdir(), "pawl-recipe-")), "run");
  const config = trainConfig(findEnvKind("household")).parse({ model: paperAlfworld.model });
  await expect(trainRun(config, { folder })).rejects.toThrow(/no checkpoint in Qwen2.5-1.5B/);
  expect(() => openRun(folder, expect.unreachable)).toThrow(/not a run folder/);
});

/** The recipes: each is a valid configuration, and runs at small scale. */
import { mkdtempSync, readdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { dose, isWhole } from "@pawl/core/dose-testing.js";
import { openEnvironment } from "@pawl/core/envs/open.js";
import { findEnvKind } from "@pawl/core/envs/registry.js";
import { expertPolicy } from "@pawl/core/rollout/policies/config.js";
import { play } from "@pawl/core/rollout/rollout.js";
import { openRun } from "@pawl/core/runs/run-folder.js";
import { promptStyle } from "@pawl/core/text/prompt.js";
import { buildTokenizer } from "@pawl/core/text/tokenizer-builder.js";
import { jobsOf } from "@pawl/studies/matrix.js";
import { comparisonOptions } from "@pawl/studies/options.js";
import { trainConfig } from "@pawl/training/config.js";
import { trainRun } from "@pawl/training/run.js";
import { worldTexts } from "@pawl/training/world-text.js";
import { worldTrainConfig } from "@pawl/worldmodel/config.js";
import { GAMES, officialDataThere, unpacked } from "@pawl/worlds/alfworld/fixtures/official.js";
import { describe, expect, it } from "vitest";
import { alfworldScratch } from "../recipes/alfworld-scratch.js";
import { alfworldScratchPaw } from "../recipes/alfworld-scratch-paw.js";
import { laptop } from "../recipes/laptop.js";
import mix from "../recipes/mix.js";
import paperAlfworld from "../recipes/paper-alfworld.js";
import paperAlfworldGigpo from "../recipes/paper-alfworld-gigpo.js";
import paperAlfworldPpo from "../recipes/paper-alfworld-ppo.js";
import paperSearch from "../recipes/paper-search.js";
import paperSearchGigpo from "../recipes/paper-search-gigpo.js";
import paperTable1Alfworld from "../recipes/paper-table-1-alfworld.js";
import paperTable1Webshop from "../recipes/paper-table-1-webshop.js";
import paperTable2 from "../recipes/paper-table-2.js";
import paperTable3Ppo from "../recipes/paper-table-3-ppo.js";
import paperTable3Rloo from "../recipes/paper-table-3-rloo.js";
import paperTable4Alfworld from "../recipes/paper-table-4-alfworld.js";
import paperTable4Webshop from "../recipes/paper-table-4-webshop.js";
import paperWebshop from "../recipes/paper-webshop.js";
import paperWebshopGigpo from "../recipes/paper-webshop-gigpo.js";
import paperWebshopPpo from "../recipes/paper-webshop-ppo.js";
import paperWebshopRloo from "../recipes/paper-webshop-rloo.js";
import paperWorldModel from "../recipes/paper-world-model.js";
import { scienceworld } from "../recipes/scienceworld.js";
import { search } from "../recipes/search.js";
import { tauRetail } from "../recipes/tau-retail.js";
import { terminal } from "../recipes/terminal.js";
import textworldDelivery from "../recipes/textworld-delivery.js";
import textworldGames from "../recipes/textworld-games.js";
import { warmStart } from "../recipes/warm-start.js";
import { webshop } from "../recipes/webshop.js";

const papers = {
  paperAlfworld,
  paperAlfworldGigpo,
  paperAlfworldPpo,
  paperWebshop,
  paperWebshopGigpo,
  paperWebshopPpo,
  paperWebshopRloo,
  paperSearch,
  paperSearchGigpo,
};
const recipes = { laptop, alfworldScratch, ...papers };

describe.each(Object.entries(recipes))("%s", (_, recipe) => {
  it("is accepted by the schema of training", () => {
    const config = trainConfig(findEnvKind(recipe.env.name)).parse(recipe);
    expect(config.paw).toMatchObject({ alpha: 0.75, rho: 0.2, loss: "cmae", lambda: "adaptive" });
    expect(config.groups * config.groupSize).toBeGreaterThanOrEqual(128);
  });
});

describe.each(Object.entries(papers))("%s does as the reference implementation", (name, recipe) => {
  const config = trainConfig(findEnvKind(recipe.env.name)).parse(recipe);

  it("fines malformed responses only, lowers actions and cuts WebShop's pages", () => {
    const search = recipe.env.name === "search";
    expect(config.advantage).toMatchObject({
      penaltyOn: "malformed",
      penalty: search ? 0.01 : 0.1,
    });
    expect(config.prompt.lowerCase).toBe(search ? undefined : true);
    if (recipe.env.name === "webshop")
      expect(config.env).toMatchObject({ observations: "after-instruction" });
  });

  it("has the algorithm of its name, with the settings of appendix A.1", () => {
    const algorithm = (/(?:Gigpo|Ppo|Rloo)$/.exec(name)?.[0] ?? "grpo").toLowerCase();
    expect(config.advantage.name).toBe(algorithm);
    if (config.advantage.name === "gigpo")
      expect(config.advantage).toMatchObject({
        ...{ gamma: 0.95, stepWeight: 1, norm: "mean-std" },
        similarity: recipe.env.name === "search" ? 0.9 : 1,
      });
    if (algorithm === "ppo")
      expect(config).toMatchObject({ groups: 128, groupSize: 1, critic: { learningRate: 1e-5 } });
  });
});

it.each([
  [paperTable1Alfworld, "grpo grpo+paw gigpo gigpo+paw"],
  [paperTable1Webshop, "grpo grpo+paw gigpo gigpo+paw"],
  [paperTable2, "grpo grpo+paw gigpo gigpo+paw"],
  [paperTable3Ppo, "ppo ppo+paw"],
  [paperTable3Rloo, "rloo rloo+paw"],
  [paperTable4Alfworld, "grpo grpo+paw grpo+fixed grpo+ce"],
  [paperTable4Webshop, "grpo grpo+paw grpo+fixed grpo+ce"],
])("a table is accepted by the schema of the comparison, with its rows: %#", (table, rows) => {
  const options = comparisonOptions(findEnvKind(table.train.env.name)).parse(table);
  const jobs = jobsOf(options);
  expect([...new Set(jobs.map((job) => job.arm))].join(" ")).toBe(rows);
  expect(new Set(jobs.map((job) => job.seed)).size).toBe(3);
  for (const { config } of jobs) {
    expect(config.advantage.penaltyOn).toBe("malformed");
    if (config.advantage.name === "gigpo")
      expect(config.advantage.similarity).toBe(table === paperTable2 ? 0.9 : 1);
    if (config.advantage.name === "rloo") expect(config.advantage.per).toBe("step");
  }
});

it("paper-world-model is accepted by the schema of world-model training", () => {
  const config = worldTrainConfig.parse({ ...paperWorldModel, data: ["data"] });
  expect(config).toMatchObject({ batch: 128, epochs: 5, optimizer: { schedule: "constant" } });
});

it("mix is accepted by the schema of world models, with a budget for each data set", () => {
  const { data, budget } = worldTrainConfig.parse(mix);
  expect(budget.map((one) => `data/${one.split("=")[0]}`)).toEqual(data);
});

it("every recipe of a paper is listed beside its table", () => {
  const listed = readFileSync("docs/papers.md", "utf8");
  const files = readdirSync("recipes").filter((file) => file.startsWith("paper-"));
  expect(files.filter((file) => !listed.includes(`recipes/${file}`))).toEqual([]);
});

it("tau-retail is accepted by the schema of training; .ci/run trains with it", () => {
  const config = trainConfig(findEnvKind("tau")).parse(tauRetail);
  expect(config.env).toMatchObject({ domain: "tau2-retail", user: "scripted" });
  expect(config.warmStart.teacher).toBe("expert");
});

it("textworldGames is accepted by the schema of training, with walkthroughs as they are", () => {
  const config = trainConfig(findEnvKind("textworld")).parse(textworldGames);
  expect(config.warmStart).toMatchObject({ teacher: "expert", epsilon: 0 });
});

it("textworldDelivery is accepted by the schema of training, for one family and all of its tests", () => {
  const { env, evaluation } = trainConfig(findEnvKind("textworld")).parse(textworldDelivery);
  const tasks = openEnvironment({ ...env, name: "textworld" }).tasks("test");
  expect(new Set(tasks.map(({ type }) => type))).toEqual(new Set(["delivery"]));
  expect(evaluation).toMatchObject({ splits: ["test"], tasks: tasks.length });
});

it("scienceworld is accepted by the schema of training", () => {
  const config = trainConfig(findEnvKind("scienceworld")).parse(scienceworld);
  expect(config.env).toMatchObject({ simplifications: ["easy"], reward: "score", processes: 2 });
});

describe.each([
  { recipe: search, tasks: 1500, longest: 120 },
  { recipe: webshop, tasks: 900, longest: 400 },
])("$recipe.env.name", ({ recipe, tasks, longest }) => {
  const config = trainConfig(findEnvKind(recipe.env.name)).parse({
    ...recipe,
    env: { ...recipe.env, data: "made-up" },
  });
  const environment = openEnvironment({ ...config.env, name: recipe.env.name });
  const style = promptStyle(environment.prompt, config.prompt);

  it("has more tasks than can be remembered, which its teacher solves in few tokens", async () => {
    expect(environment.tasks("train").length).toBeGreaterThan(tasks);
    const tokenizer = buildTokenizer(await worldTexts(environment, style));
    const count = dose(200);
    const solved: boolean[] = [];
    await play({
      ...{ environment, style, policy: expertPolicy(environment.expert!), groupSize: 1, seed: 0 },
      tasks: environment.tasks(environment.splits.at(-1)!).slice(0, count),
      stepLimit: recipe.stepLimit,
      onEpisode({ steps, success }) {
        solved.push(success);
        const { prompt, response, observation } = steps.at(-1)!;
        const shown = prompt.map(({ text }) => text).join("");
        // Whole words are single tokens, also in tasks that are not trained on.
        expect(tokenizer.encode(`${shown}${response}${observation}`).length).toBeLessThan(longest);
        for (const step of steps)
          expect(tokenizer.encode(step.response).length).toBeLessThan(config.maxTokens);
      },
    });
    expect(solved).toEqual(Array(count).fill(true));
  });
});

it("terminal is accepted by the schema of training, and its teacher needs few steps and tokens", async () => {
  const config = trainConfig(findEnvKind("terminal")).parse(terminal);
  const environment = openEnvironment({ ...config.env, name: "terminal" });
  const style = promptStyle(environment.prompt, config.prompt);
  const tokenizer = buildTokenizer(await worldTexts(environment, style));
  const count = dose(100);
  for (const split of config.evaluation.splits)
    await play({
      ...{ environment, style, policy: expertPolicy(environment.expert!), groupSize: 1, seed: 0 },
      tasks: environment.tasks(split).slice(0, count),
      stepLimit: config.stepLimit!,
      onEpisode({ steps, success }) {
        expect(success).toBe(true);
        const shown = steps
          .at(-1)!
          .prompt.map(({ text }) => text)
          .join("");
        expect(tokenizer.encode(shown).length).toBeLessThan(250);
        for (const { response } of steps)
          expect(tokenizer.encode(response).length).toBeLessThan(config.maxTokens);
      },
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

/** Trains with a recipe, scaled down to seconds, and checks the record. */
async function runCutDown(recipe: { env: { name: string } }, env: Record<string, unknown>) {
  const folder = join(mkdtempSync(join(tmpdir(), "pawl-recipe-")), "run");
  const config = trainConfig(findEnvKind(recipe.env.name)).parse({
    ...recipe,
    env: { ...recipe.env, ...env },
    model: { start: "tiny", maxContext: 1536 },
    engine: { threads: 1 },
    prompt: { style: "compact" },
    warmStart: { episodes: 2, sft: { epochs: 1, batch: 2 } },
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

  it.runIf(isWhole)("paper-search runs in the synthetic world", () =>
    runCutDown(paperSearch, { topk: 1 }),
  );

  const skipped = officialDataThere ? "" : " (skipped: no official games next to the project)";
  it.runIf(isWhole && officialDataThere)(
    `paper-alfworld runs on the official games${skipped}`,
    () => runCutDown(paperAlfworld, { data: unpacked(GAMES) }),
  );
});

it("a recipe without its model is refused before a run is created", async () => {
  const folder = join(mkdtempSync(join(tmpdir(), "pawl-recipe-")), "run");
  const config = trainConfig(findEnvKind("household")).parse({ model: paperAlfworld.model });
  await expect(trainRun(config, { folder })).rejects.toThrow(/no checkpoint in Qwen2.5-1.5B/);
  expect(() => openRun(folder, expect.unreachable)).toThrow(/not a run folder/);
});

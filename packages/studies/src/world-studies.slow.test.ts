import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isWhole } from "@pawl/core/dose-testing.js";
import { loadTokenizer } from "@pawl/core/text/tokenizer.js";
import { engineOptions } from "@pawl/training/engines.js";
import { tinyConfig } from "@pawl/training/testing.js";
import { worldTrainConfig } from "@pawl/worldmodel/config.js";
import { writeDataSet } from "@pawl/worldmodel/dataset.js";
import { openPlayer } from "@pawl/worldmodel/players.js";
import { findWorldModel } from "@pawl/worldmodel/saved.js";
import { oneRoom, oracleModel, someTrajectories } from "@pawl/worldmodel/testing.js";
import { beforeAll, describe, expect, it } from "vitest";
import { synthesise, trainAndTest, variantEpisodes, variants } from "./synthesis.js";
import { compareWarmStart, meanCurve } from "./world-first.js";
import { measureScaling } from "./world-scale.js";

const parent = mkdtempSync(join(tmpdir(), "pawl-world-studies-"));
const data = join(parent, "data");
/** A word that no training trajectory contains. */
const TESTED_WORD = " goldfish";

const config = (changes: object = {}) =>
  worldTrainConfig.parse({
    data: [data],
    model: { start: "tiny", maxContext: 192 },
    engine: { threads: 1 },
    epochs: 1,
    batch: 4,
    optimizer: { learningRate: 3e-3, warmup: 2 },
    evaluation: { every: 5, trajectories: 1 },
    maxTokens: 24,
    ...changes,
  });

beforeAll(async () => {
  const trajectories = await someTrajectories(["expert:8", "epsilon=0.5:4"]);
  const test = trajectories.slice(0, 2).map(({ turns, ...rest }) => ({
    ...rest,
    turns: turns.map((turn) => ({ ...turn, observation: `${turn.observation}${TESTED_WORD}` })),
  }));
  writeDataSet(data, { train: trajectories.slice(2), test });
});

it("scales over data and models, keeping what is done", async () => {
  const folder = join(parent, "scale");
  const { budget: _, ...settings } = config({ evaluation: { every: 0 } });
  let steps = 0;
  const options = {
    folder,
    sizes: [2, 8],
    models: ["tiny"],
    testTrajectories: 1,
    onStep: () => void steps++,
  };
  const points = await measureScaling(settings, options);
  expect(points.map(({ size, model }) => [size, model])).toEqual([
    [2, "tiny"],
    [8, "tiny"],
  ]);
  expect(points[0]!.fidelity.all.turns).toBe(points[1]!.fidelity.all.turns);
  expect(points[0]!.parameters).toBeGreaterThan(100_000);
  expect(steps).toBe(3);
  expect(await measureScaling(settings, options)).toEqual(points);
  expect(steps).toBe(3);
});

describe("synthetic data", () => {
  it("of a perfect model is as good as real data, and agents learn from every variant", async () => {
    const environment = oneRoom();
    const player = await openPlayer("expert", environment);
    const tasks = environment.tasks("train").slice(0, 12);
    const made = await synthesise({
      environment,
      model: oracleModel(environment, "train"),
      player,
      realTasks: tasks.slice(0, 6),
      synTasks: tasks.slice(6),
      seed: 0,
      stepLimit: 12,
    });
    expect(made).toMatchObject({ precision: 1, tried: 6, endings: { success: 6 } });
    const sizes = variants.map((variant) => variantEpisodes(variant, made, 5).length);
    expect(sizes).toEqual([5, 5, 5, 10]);
    const half = variantEpisodes("Half", made, 5);
    expect(half.filter((episode) => made.syn.includes(episode))).toHaveLength(3);
    const { tokenizer: file } = findWorldModel(join(parent, "scale", "model-0-8"));
    const tokenizer = await loadTokenizer(file);
    const counts = await trainAndTest(half, {
      environment,
      style: player.style,
      start: { preset: "tiny" },
      maxContext: 192,
      tokenizer,
      sft: tinyConfig().warmStart.sft,
      splits: ["valid_seen"],
      tasks: 2,
      temperature: 0,
      maxTokens: 8,
      stepLimit: 3,
      engine: engineOptions.parse({ threads: 1 }),
      seed: 0,
    });
    expect(counts.valid_seen).toMatchObject({ episodes: 2, broken: 0 });
  });

  it("that does not exist is rejected", () => {
    expect(() => variantEpisodes("Syn", { real: [], syn: [] })).toThrow(/nothing to compare/);
  });
});

it.runIf(isWhole)("compares a warm start with a cold one, from the same weights", async () => {
  const { model: _, engine: __, seed: ___, ...world } = config();
  const train = tinyConfig({ model: { start: "tiny", maxContext: 256 }, updates: 1 });
  const folder = join(parent, "arms");
  const stages: string[] = [];
  const options = {
    folder,
    onStage: (name: string) => {
      stages.push(name);
      return {};
    },
  };
  const curves = await compareWarmStart({ world, train, seeds: [4] }, options);
  expect(stages).toEqual(["seed 4: world model", "seed 4: warm", "seed 4: cold"]);
  const tokenizer = await loadTokenizer(join(folder, "seed-4", "start"));
  expect(tokenizer.encode(TESTED_WORD).length).toBeGreaterThan(1);
  expect(curves.map(({ arm, evaluations }) => [arm, evaluations.length])).toEqual([
    ["warm", 2],
    ["cold", 2],
  ]);
  expect([...meanCurve(curves, "warm").get("valid_seen")!.keys()]).toEqual([-1, 0]);
  expect(await compareWarmStart({ world, train, seeds: [4] }, options)).toEqual(curves);
  expect(stages).toHaveLength(3);
  // An agent is a world model too, and a player.
  const agent = curves[0]!.folder;
  expect(findWorldModel(agent).protocol).toEqual({
    context: false,
    marker: "",
    system: "pawl",
  });
  const player = await openPlayer(agent, oneRoom(), { engine: { threads: 1 } });
  expect(player.looksInside).toBe(false);
  await player.dispose();
});

import { cpSync, existsSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { openRun } from "../runs/run-folder.js";
import { loadTokenizer } from "../text/tokenizer.js";
import { worldTrainConfig } from "./config.js";
import { writeDataSet } from "./dataset.js";
import { sameOutcome, scoreTurns } from "./fidelity.js";
import { findWorldModel, loadWorldModel } from "./saved.js";
import { someTrajectories } from "./testing.js";
import { trainWorldModel } from "./train.js";
import type { Trajectory } from "./trajectory.js";

const parent = mkdtempSync(join(tmpdir(), "pawl-wm-train-"));
const data = join(parent, "data");
let trajectories: readonly Trajectory[];
/** A word that no training trajectory contains. */
const TESTED_WORD = " goldfish";
const fail = (message: string): never => {
  throw new Error(message);
};

const config = (changes: object = {}) =>
  worldTrainConfig.parse({
    data: [data],
    model: { start: "tiny", maxContext: 192 },
    // Test files run in parallel: more threads would only compete with one another.
    engine: { threads: 1 },
    epochs: 2,
    batch: 4,
    optimizer: { learningRate: 3e-3, warmup: 2 },
    evaluation: { every: 5, trajectories: 1 },
    checkpointEvery: 3,
    maxTokens: 24,
    ...changes,
  });

beforeAll(async () => {
  trajectories = await someTrajectories(["expert:8", "epsilon=0.5:4"]);
  const test = trajectories.slice(0, 2).map(({ turns, ...rest }) => ({
    ...rest,
    turns: turns.map((turn) => ({ ...turn, observation: `${turn.observation}${TESTED_WORD}` })),
  }));
  writeDataSet(data, { train: trajectories.slice(2), test });
});

describe("a world model's training", () => {
  const whole = join(parent, "whole");

  it("records metrics, checkpoints and a model to start from", async () => {
    const problems: string[] = [];
    const folder = whole;
    await trainWorldModel(config(), { folder, onProblem: (message) => problems.push(message) });
    const run = openRun(folder, fail);
    expect(run.manifest).toMatchObject({ status: "done", kind: "wm-train" });
    const lines = run.metrics();
    expect(lines.map(({ update }) => update)).toEqual([2, 4, 5]);
    expect(lines.at(-1)!["wm.loss"]).toBeLessThan(lines[0]!["wm.loss"]!);
    expect(lines[1]).toHaveProperty(["wm.exactMatch"]);
    for (const file of ["config.json", "tokenizer.json"])
      expect(existsSync(join(folder, "model", file))).toBe(true);
  });

  it("resumes after an interruption with the same numbers", async () => {
    const folder = join(parent, "cut");
    const controller = new AbortController();
    const interrupted = trainWorldModel(config(), {
      folder,
      signal: controller.signal,
      onStep: ({ step }) => step === 3 && controller.abort(),
    });
    await expect(interrupted).rejects.toThrow(/abort/);
    expect(openRun(folder, fail).manifest.status).toBe("interrupted");
    await trainWorldModel(config(), { folder, resume: true });
    // The mean loss of the line after the interruption is over fewer steps; what was learnt is the
    // same.
    const [expected, found] = [whole, folder].map((place) => openRun(place, fail).metrics());
    expect(found!.at(-1)).toEqual(expected!.at(-1));
    expect(found!.map(({ gradNorm }) => gradNorm)).toEqual(
      expected!.map(({ gradNorm }) => gradNorm),
    );
  });

  it("resumes for more epochs when it is done, and refuses settings that cannot change", async () => {
    const folder = join(parent, "longer");
    cpSync(whole, folder, { recursive: true });
    const { epochs, batch } = config();
    const notices: string[] = [];
    const again = (changes: object) =>
      trainWorldModel(config(changes), {
        folder,
        resume: true,
        onProblem: (message) => notices.push(message),
      });
    await expect(again({ batch: batch + 1 })).rejects.toThrow(/--batch cannot change/);
    await expect(again({ epochs: epochs - 1 })).rejects.toThrow(/--epochs: .* already/);
    await again({ epochs: epochs + 1 });
    const { manifest, metrics } = openRun(folder, fail);
    expect(manifest.resumes).toMatchObject([
      { changed: { epochs: { from: epochs, to: epochs + 1 } } },
    ]);
    expect(metrics().at(-1)!.update).toBeGreaterThan(
      openRun(whole, fail).metrics().at(-1)!.update!,
    );
    expect(notices).toContainEqual(expect.stringContaining(`falls over ${epochs + 1} epochs`));
    expect(metrics().at(-1)!.learningRate).toBeLessThan(metrics()[0]!.learningRate!);
  });

  it("has a tokenizer of its training text, and of none of its test text", async () => {
    const tokenizer = await loadTokenizer(join(whole, "model"));
    const [, word] = / ([a-z]+) /.exec(trajectories[2]!.turns[0]!.observation)!;
    expect(tokenizer.encode(` ${word}`)).toHaveLength(1);
    expect(tokenizer.encode(TESTED_WORD).length).toBeGreaterThan(1);
  });

  it("says what does not fit, and rejects data if nothing fits", async () => {
    const notices: string[] = [];
    const folder = join(parent, "short");
    const short = config({ model: { start: "tiny", maxContext: 16 } });
    await expect(
      trainWorldModel(short, { folder, onProblem: (message) => notices.push(message) }),
    ).rejects.toThrow(/no trajectory fits into the model's 16 tokens: set --model.max-context/);
    expect(notices[0]).toMatch(/no turn fits into the model's 16 tokens; left out/);
    const nothing = trainWorldModel(config({ budget: ["household=0"] }), { folder: `${folder}-2` });
    await expect(nothing).rejects.toThrow(/nothing to learn from within --budget/);
    expect(existsSync(`${folder}-2`)).toBe(false);
  });

  it("gives a world model whose certain answers equal its sampled ones", async () => {
    const { model, dispose } = await loadWorldModel(whole, {
      engine: { threads: 1 },
      maxTokens: 24,
    });
    try {
      const certain = await model.certain!(trajectories.slice(0, 4));
      const { certain: _, ...sampling } = model;
      const sampled = await scoreTurns(sampling, trajectories.slice(0, 4));
      for (const { trajectory, index, exact } of sampled) {
        if (certain[trajectories.indexOf(trajectory)]![index]) expect(exact).toBe(true);
      }
      // Certainty only saves work: the scores are the same without it.
      const scored = await scoreTurns(model, trajectories.slice(0, 4));
      const count = (turns: typeof scored) => turns.filter(({ exact }) => exact).length;
      expect(count(scored)).toBe(count(sampled));
      expect(scored).toHaveLength(sampled.length);
      const query = { ...trajectories[0]!, turns: [], action: "look ".repeat(200) };
      const [overlong] = await model.predict([query]);
      expect(overlong).toMatchObject({ degeneration: "context", success: false });
      expect(sameOutcome(overlong!, trajectories[0]!.turns[0]!)).toBe(false);
    } finally {
      await dispose();
    }
  });

  it("is found by its run, its model and its checkpoints", () => {
    for (const place of [whole, join(whole, "model"), join(whole, "checkpoints", "000006")])
      expect(findWorldModel(place).protocol.marker).toBe("[SUCCESS]");
  });
});

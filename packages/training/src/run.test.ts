import { mkdtempSync, readdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { dose } from "@pawl/core/dose-testing.js";
import type { MetricsLine } from "@pawl/core/runs/metrics-file.js";
import { openRun } from "@pawl/core/runs/run-folder.js";
import { beforeAll, describe, expect, it } from "vitest";
import type { TrainConfig } from "./config.js";
import { trainRun } from "./run.js";
import { tinyConfig } from "./testing.js";

const parent = mkdtempSync(join(tmpdir(), "pawl-train-"));

/** Enough episodes and steps to have something to compare. */
const tiny = (changes: Record<string, unknown> = {}): TrainConfig =>
  tinyConfig({
    model: { start: "tiny", maxContext: 320 },
    warmStart: { episodes: 32, sft: { epochs: 3, batch: 8, optimizer: { learningRate: 3e-3 } } },
    groups: 3,
    groupSize: 4,
    stepLimit: 6,
    maxTokens: 8,
    minibatch: 24,
    gradients: { every: 10 },
    evaluation: { every: 2, tasks: 6, splits: ["valid_seen"] },
    ...changes,
  });

const fail = (message: string): never => {
  throw new Error(message);
};

/** What a run recorded, except what depends on the clock and the machine. */
function recorded(folder: string) {
  const run = openRun(folder, fail);
  const timeless = (line: MetricsLine) =>
    Object.fromEntries(Object.entries(line).filter(([name]) => !/^(seconds|memory)\./.test(name)));
  return { episodes: [...run.episodes()], metrics: run.metrics().map(timeless) };
}

describe("a training run", () => {
  let whole: string;
  beforeAll(async () => {
    whole = join(parent, "whole");
    await trainRun(tiny(), { folder: whole });
  });

  it("records episodes, metrics and checkpoints", () => {
    const { episodes, metrics } = recorded(whole);
    expect(metrics.map((line) => line.update)).toEqual([-1, 0, 1, 2]);
    expect(episodes).toHaveLength(3 * 3 * 4);
    expect(new Set(episodes.map((episode) => episode.group)).size).toBe(9);
    const kinds = episodes[0]!.steps[0]!.sequence!.spans.map((span) => span.kind);
    expect(kinds).toEqual(expect.arrayContaining(["prompt", "action", "observation"]));
    for (const name of [
      "train.success",
      "world.loss",
      "world.lambda",
      "world.p",
      "policy.kl",
      "policy.clipped",
      "gradNorm",
      "gradient.policy",
      "gradient.world",
      "gradient.cosine",
    ]) {
      expect(Number.isFinite(metrics[1]![name]), name).toBe(true);
    }
    expect(metrics[0]).toHaveProperty(["eval.valid_seen.success"]);
    expect(readdirSync(join(whole, "checkpoints"))).toEqual(["000002", "000003"]);
    expect(openRun(whole, fail).manifest.status).toBe("done");
  });

  it("is reproducible, and resumes after an interruption with the same numbers", async () => {
    const cut = join(parent, "cut");
    const controller = new AbortController();
    const interrupted = trainRun(tiny(), {
      folder: cut,
      signal: controller.signal,
      onMetrics: (line) => line.update === 1 && controller.abort(),
    });
    await expect(interrupted).rejects.toThrow(/abort/);
    expect(openRun(cut, fail).manifest.status).toBe("interrupted");
    await trainRun(tiny(), { folder: cut, resume: true });
    expect(recorded(cut)).toEqual(recorded(whole));
    expect(openRun(cut, fail).manifest.status).toBe("done");
  });

  it("trains with every estimator, with and without world modelling", async () => {
    // All of them at night; ppo also in critic.slow.test.ts.
    const variants = [
      { advantage: { name: "gigpo" }, paw: { loss: "ce", entropy: "full" } },
      { advantage: { name: "rloo" }, paw: { loss: "off" } },
      { advantage: { name: "ppo" } },
    ].slice(0, dose(3, 1));
    // Several minibatches.
    const small = { updates: 1, minibatch: 9, evaluation: { every: 0 } };
    for (const [index, variant] of variants.entries()) {
      const folder = join(parent, String(index));
      await trainRun(tinyConfig({ ...variant, ...small }), { folder });
      const { metrics } = recorded(folder);
      expect(metrics.at(-1)).toHaveProperty(["policy.loss"]);
      expect("world.loss" in metrics.at(-1)!).toBe(variant.paw?.loss !== "off");
    }
  });
});

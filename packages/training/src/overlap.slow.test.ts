import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { MetricsLine } from "@pawl/core/runs/metrics-file.js";
import { openRun } from "@pawl/core/runs/run-folder.js";
import { checkStaleness } from "@pawl/core/train/staleness.js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { isComparable, replayRun } from "./replay.js";
import { type TrainOptions, trainRun } from "./run.js";
import { tinyConfig } from "./testing.js";

const parent = mkdtempSync(join(tmpdir(), "pawl-overlap-"));
afterAll(() => rmSync(parent, { recursive: true, force: true }));
const fail = (message: string): never => {
  throw new Error(message);
};
const config = tinyConfig({ overlap: 1, updates: 4 });

/** Everything that does not depend on time, the evaluations included. */
const numbersOf = (folder: string): readonly MetricsLine[] =>
  openRun(folder, fail)
    .metrics()
    .map((line) =>
      Object.fromEntries(
        Object.entries(line).filter(([name]) => isComparable(name) || name.startsWith("eval.")),
      ),
    );

/** Trains until this update has been reported, and is interrupted there. */
async function interrupted(folder: string, update: number): Promise<void> {
  const stop = new AbortController();
  const onMetrics: TrainOptions["onMetrics"] = (line) => {
    if (line.update === update) stop.abort(new Error("enough"));
  };
  await expect(trainRun(config, { folder, signal: stop.signal, onMetrics })).rejects.toThrow();
}

describe("a run whose updates are played while others are learnt", () => {
  const run = join(parent, "run");
  const problems: string[] = [];
  beforeAll(() =>
    trainRun(config, { folder: run, onProblem: (problem) => void problems.push(problem) }),
  );

  it("records which weights drew each episode: those before the update before", () => {
    const weights = new Map<number, Set<number | undefined>>();
    for (const episode of openRun(run, fail).episodes()) {
      const update = Math.floor(episode.group / config.groups);
      weights.set(update, (weights.get(update) ?? new Set()).add(episode.weights));
    }
    expect([...weights]).toEqual([
      [0, new Set([0])],
      [1, new Set([0])],
      [2, new Set([1])],
      [3, new Set([2])],
    ]);
    const lines = openRun(run, fail).metrics().slice(1);
    expect(lines.map((line) => line["train.staleness"])).toEqual([0, 1, 1, 1]);
    // The first update was drawn by the weights that learn from it: nothing to correct.
    expect(lines[0]!["policy.importance"]).toBeCloseTo(1, 4);
    expect(lines[0]!["policy.drift"]).toBeLessThan(1e-4);
    expect(lines[1]!["policy.drift"]).toBeGreaterThan(1e-4);
    expect(lines.every((line) => line["mismatch.mean"]! < 1e-4)).toBe(true);
    expect("pace.overlapped" in lines[0]!).toBe(false);
    expect(lines[1]!["pace.overlapped"]).toBeGreaterThanOrEqual(0);
  });

  it("says what the embedded engine does not overlap", () => {
    expect(problems.join("\n")).toMatch(/overlap: embedded samples and learns in turns/);
  });

  it("is replayed with the same numbers", async () => {
    const replayed = [];
    for await (const one of replayRun(openRun(run, fail), { losses: true, tolerance: 1e-3 }))
      replayed.push(one);
    expect(replayed.flatMap(({ divergences }) => divergences)).toEqual([]);
    expect(replayed.map(({ learnt }) => learnt)).toEqual([true, false, false, true]);
    // Without weights the record still tells it.
    expect(replayed[1]!.compared).toContain("train.staleness");
    for (const name of ["policy.importance", "policy.drift", "train.staleness", "loss"])
      expect(replayed[3]!.compared).toContain(name);
  });

  it("goes on with the same numbers after an interruption, wherever that came", async () => {
    const resumed = join(parent, "resumed");
    await interrupted(resumed, 0);
    await expect(trainRun(config, { folder: resumed, resume: true })).resolves.toBeUndefined();
    expect(numbersOf(resumed)).toEqual(numbersOf(run));
    const episodesOf = (folder: string) => [...openRun(folder, fail).episodes()];
    expect(episodesOf(resumed)).toEqual(episodesOf(run));
  });
});

it("is refused where staleness cannot be corrected for", () => {
  const carry = { pace: "own", stragglerSeconds: 5, stragglers: "carry" };
  const check = (changes: object) => () => checkStaleness(tinyConfig({ ...changes }));
  expect(check({ overlap: 1 })).not.toThrow();
  expect(check({ rollout: carry })).not.toThrow();
  expect(check({ overlap: 1, rollout: carry })).toThrow(/two updates old/);
  expect(check({ overlap: 1, advantage: { name: "ppo" } })).toThrow(/^overlap 1: ppo's critic/);
  expect(check({ rollout: carry, advantage: { name: "ppo" } })).toThrow(/^rollout\.stragglers/);
});

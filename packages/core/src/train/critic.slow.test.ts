/** A critic with its own weights: what it learns, where it is saved, and what is refused. */
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { testModel } from "@pawl/engine-remote/remote/model-testing.js";
import { startTestServer } from "@pawl/engine-remote/remote/server-testing.js";
import { checkCritic, openCritic } from "@pawl/training/open-critic.js";
import { trainConfigOf } from "@pawl/training/recorded-config.js";
import { replayRun } from "@pawl/training/replay.js";
import { trainRun } from "@pawl/training/run.js";
import { tinyConfig } from "@pawl/training/testing.js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { isWhole } from "../dose-testing.js";
import type { MetricsLine } from "../runs/metrics-file.js";
import { openRun } from "../runs/run-folder.js";
import type { Update } from "../update/update.js";
import { hasOwnCritic } from "./critic.js";

const parent = mkdtempSync(join(tmpdir(), "pawl-critic-"));
afterAll(() => rmSync(parent, { recursive: true, force: true }));
const fail = (message: string): never => {
  throw new Error(message);
};

const ppo = (changes: object = {}) =>
  tinyConfig({
    advantage: { name: "ppo" },
    warmStart: { episodes: 0 },
    evaluation: { every: 0 },
    updates: 2,
    ...changes,
  });

/** What a run recorded, except what depends on the clock and the machine. */
function numbers(folder: string): readonly MetricsLine[] {
  return openRun(folder, fail)
    .metrics()
    .map((line) =>
      Object.fromEntries(
        Object.entries(line).filter(([name]) => !/^(seconds|memory)\./.test(name)),
      ),
    );
}

async function divergences(folder: string) {
  const found: string[] = [];
  const learnt: boolean[] = [];
  for await (const update of replayRun(openRun(folder, fail), { losses: true, tolerance: 1e-3 })) {
    found.push(...update.divergences.map(({ quantity }) => quantity));
    learnt.push(update.learnt);
  }
  return { found, learnt };
}

const holdsValueHead = (folder: string): boolean =>
  readFileSync(join(folder, "model.safetensors")).includes("value_head");

describe("what a separate critic learns", () => {
  const MAX_RETURN = 10;
  const model = { preset: "tiny", vocabularySize: 16, maxContext: 32 } as const;
  const [won, lost] = [
    [1, 2, 3, 4],
    [5, 6, 7, 8, 9],
  ] as const;
  /** The second's task is worth half as much as the largest, which is what the first's is worth. */
  const episodes = [{}, { maxReturn: MAX_RETURN / 2 }];
  /** Two sequences whose action tokens (the last two, and the third) are worth 10 and 0. */
  const update = (values: readonly ArrayLike<number>[]): Update => {
    const weights = [
      [0, 0, 0.25, 0.25],
      [0, 0, 0.5, 0, 0],
    ];
    const sequences = [won, lost].map((ids, i) => ({
      ids: [...ids],
      targets: new Uint8Array(ids.length).fill(1),
      steps: 1,
      inputs: {
        policyWeight: Float32Array.from(weights[i]!),
        oldValue: Float32Array.from(values[i]!),
        targetReturn: new Float32Array(ids.length).fill(i === 0 ? MAX_RETURN : 0),
        worldWeight: new Float32Array(ids.length).fill(1),
      },
    }));
    const transitions = episodes.map((source) => ({ source }));
    return { sequences, transitions } as unknown as Update;
  };

  it("are values in returns, from 0 to the actions' true worth", async () => {
    const config = ppo({ critic: { learningRate: 3e-3 }, optimizer: { warmup: 0 } });
    const critic = await openCritic(config, model, MAX_RETURN, { seed: 1 });
    const actions = [
      { ids: won, targets: [0, 0, 1, 1] },
      { ids: lost, targets: [0, 0, 1, 0, 0] },
    ];
    const how = { aggregation: "token-mean", minibatch: 8, stepsInAll: 60, seed: 0 } as const;
    const first = await critic.values(actions, episodes);
    expect([...first[0]!, ...first[1]!].every((value) => value === 0)).toBe(true);
    const lines: MetricsLine[] = [];
    for (let step = 0; step < 60; step++) {
      const values = await critic.values(actions, episodes);
      lines.push(await critic.learn(update(values), { ...how, stepsBefore: step }));
    }
    const [high, low] = await critic.values(actions, episodes);
    for (const at of [2, 3]) expect(Math.abs(high![at]! - MAX_RETURN)).toBeLessThan(1);
    expect(Math.abs(low![2]!)).toBeLessThan(1);
    // Every value starts at 0: errors of 1, 1 and 0 in units of the largest return, around a mean
    // of 2/3.
    expect(lines[0]!["critic.error"]).toBeCloseTo(2 / 3, 5);
    expect(lines[0]!["critic.loss"]).toBeCloseTo(0.01 * 0.5 * 0.5, 6);
    expect(lines[0]!["critic.explained"]).toBeCloseTo(1 - 2 / (2 / 3), 4);
    expect(lines.at(-1)!["critic.explained"]).toBeGreaterThan(0.95);
    await critic.dispose();
  });
});

describe("a run of PPO", () => {
  const whole = join(parent, "whole");
  beforeAll(() => trainRun(ppo(), { folder: whole }));

  it("keeps critic and policy apart, in metrics and on disk", async () => {
    const [, first, second] = numbers(whole);
    for (const line of [first!, second!]) {
      expect(line["critic.loss"]).toBeGreaterThanOrEqual(0);
      expect(line["critic.gradNorm"]).toBeGreaterThanOrEqual(0);
      expect(line).not.toHaveProperty(["policy.value"]);
      expect(line["mismatch.max"]).toBeLessThan(1e-4);
    }
    const last = join(whole, "checkpoints", "000002");
    expect(holdsValueHead(last)).toBe(false);
    expect(holdsValueHead(join(last, "critic"))).toBe(true);
    expect(existsSync(join(last, "critic", "optimizer.safetensors"))).toBe(true);
    expect(await divergences(whole)).toEqual({ found: [], learnt: [true, true] });
  });

  it("resumes after an interruption with the same numbers", async () => {
    const cut = join(parent, "cut");
    const controller = new AbortController();
    const interrupted = trainRun(ppo(), {
      folder: cut,
      signal: controller.signal,
      onMetrics: (line) => line.update === 0 && controller.abort(),
    });
    await expect(interrupted).rejects.toThrow(/abort/);
    await trainRun(ppo(), { folder: cut, resume: true });
    expect(numbers(cut)).toEqual(numbers(whole));
  });

  it.runIf(isWhole)(
    "that was recorded before critics had their own weights resumes with its value head, and replays",
    async () => {
      const shared = ppo({ critic: { weights: "shared" } });
      const before = join(parent, "before");
      await trainRun({ ...shared, updates: 1 }, { folder: before });
      expect(numbers(before).at(-1)).toHaveProperty(["policy.value"]);
      expect(holdsValueHead(join(before, "checkpoints", "000001"))).toBe(true);
      const manifest = join(before, "manifest.json");
      const { checksum: _, ...recorded } = JSON.parse(readFileSync(manifest, "utf8"));
      const { critic: __, ...old } = recorded.config;
      const content = { ...recorded, config: old };
      writeFileSync(manifest, JSON.stringify(content));
      expect((await divergences(before)).found).toEqual([]);
      // Its settings are read as they were at the time, and a separate critic would be a different
      // run.
      const longer = { ...trainConfigOf(before), updates: 2 };
      expect(longer.critic.weights).toBe("shared");
      await expect(
        trainRun({ ...longer, critic: { weights: "own" } }, { folder: before, resume: true }),
      ).rejects.toThrow(/--critic.weights cannot change on a resumed run/);
      await trainRun(longer, { folder: before, resume: true });
      expect(numbers(before).at(-1)).toHaveProperty(["policy.value"]);
    },
  );

  it.runIf(isWhole)(
    "puts its critic on the policy's engine server, or on another, with the same numbers",
    async () => {
      const serve = (name: string) =>
        startTestServer({ model: testModel, folder: join(parent, name), extensions: true });
      const [server, other] = [await serve("server"), await serve("other")];
      const there = join(parent, "there");
      const config = ppo({ engine: { address: server.url }, updates: 3 });
      await trainRun(config, { folder: there });
      const [a, b] = [numbers(whole), numbers(there)];
      for (const [i, line] of a.entries())
        for (const [name, value] of Object.entries(line))
          expect(b[i]![name], name).toBeCloseTo(value, 4);
      // The reference, plus policy and critic of both kept checkpoints, with one spare save each.
      expect(readdirSync(join(parent, "server", "there")).length).toBeLessThanOrEqual(7);
      const engine = { address: server.url, copy: true };
      const apart = ppo({ engine, critic: { engine: other.url }, updates: 1 });
      await trainRun(apart, { folder: join(parent, "apart") });
      expect(other.counts.get("forward_backward")).toBeGreaterThan(0);
      expect(numbers(join(parent, "apart"))[1]!["critic.loss"]).toBeCloseTo(
        a[1]!["critic.loss"]!,
        4,
      );
      await server.close();
      await other.close();
    },
  );
});

describe("settings of a critic", () => {
  it("are refused if it could not get its weights", () => {
    const apart = ppo({ critic: { engine: "http://gpu:2" }, engine: { address: "http://gpu:1" } });
    expect(() => checkCritic(apart)).toThrow(/critic.engine: .*set engine.copy/);
    expect(() => checkCritic({ ...apart, engine: { ...apart.engine, copy: true } })).not.toThrow();
    expect(() => checkCritic(ppo({ critic: { learningRate: 1 } }))).not.toThrow();
    expect(hasOwnCritic(tinyConfig())).toBe(false);
    expect(hasOwnCritic(ppo())).toBe(true);
  });
});

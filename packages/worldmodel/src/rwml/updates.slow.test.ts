import { existsSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isWhole } from "@pawl/core/dose-testing.js";
import { findEnvKind } from "@pawl/core/envs/registry.js";
import type { MetricsLine } from "@pawl/core/runs/metrics-file.js";
import { openRun } from "@pawl/core/runs/run-folder.js";
import { runCli } from "@pawl/pawl/cli/testing.js";
import { trainRun } from "@pawl/training/run.js";
import { tinyConfig } from "@pawl/training/testing.js";
import { beforeAll, describe, expect, it } from "vitest";
import { type RwmlConfig, rwmlConfig } from "./config.js";
import { weightChange } from "./forgetting.js";
import { predictedShares } from "./metrics.js";
import type { StateReward } from "./reward.js";
import { rwmlRun } from "./run.js";
import { loadTriplets } from "./triplet.js";

const parent = mkdtempSync(join(tmpdir(), "pawl-rwml-"));
const warm = join(parent, "warm");

/** An RWML run that takes seconds: the smallest world, rewarded by ROUGE-L. */
function tiny(changes: Record<string, unknown> = {}): RwmlConfig {
  const { env, prompt, engine, stepLimit, maxTokens } = tinyConfig();
  return rwmlConfig(findEnvKind("household")).parse({
    ...{ env, prompt, engine, stepLimit, maxTokens },
    model: { start: warm },
    collect: { episodes: 12, epsilon: 0.3 },
    filter: { share: 0.1, epochs: 1, batch: 4 },
    reward: { name: "rouge" },
    updates: 3,
    triplets: 4,
    groupSize: 4,
    predictionTokens: 16,
    minibatch: 16,
    objective: { entropy: 0, kl: 0.01 },
    heldOut: { share: 0.3, triplets: 6 },
    evaluation: { every: 2, tasks: 2, splits: ["valid_seen"] },
    ...changes,
  });
}

const fail = (message: string): never => {
  throw new Error(message);
};

/** What a run recorded, except what depends on the clock and the machine. */
function recorded(folder: string) {
  const run = openRun(folder, fail);
  const timeless = (line: MetricsLine) =>
    Object.fromEntries(Object.entries(line).filter(([name]) => !/^(seconds|memory)\./.test(name)));
  return {
    episodes: [...run.episodes()],
    metrics: run.metrics().map(timeless),
    summary: run.manifest.summary,
  };
}

const equal: StateReward = {
  name: "all equal",
  rate: async (pairs) => ({ values: pairs.map(() => 0), unreadable: 0 }),
};

beforeAll(async () => {
  await trainRun(
    tinyConfig({
      updates: 0,
      warmStart: {
        episodes: 32,
        sft: { epochs: 3, batch: 8, observationWeight: 1, optimizer: { learningRate: 3e-3 } },
      },
    }),
    { folder: warm },
  );
});

describe("predictedShares", () => {
  it("separates triplets that can be learnt from those always and never predicted", () => {
    const groups = [
      [0, 0],
      [1, 0],
      [0.7, 0.71],
      [1, 1],
      [0.6, 0.6],
      [0.4, 0.4],
      [0, 0],
      [0, 1],
    ];
    expect(predictedShares("x", groups)).toEqual({
      "x.foreseen.none": 3 / 8,
      "x.foreseen.some": 3 / 8,
      "x.foreseen.all": 2 / 8,
    });
  });
});

describe("an RWML run", () => {
  const whole = join(parent, "whole");
  beforeAll(() => rwmlRun(tiny(), { folder: whole }));

  it("records triplets, predictions, metrics, checkpoints and what was forgotten", async () => {
    const { episodes, metrics, summary } = recorded(whole);
    expect(metrics.map((line) => line.update)).toEqual([-1, 0, 1, 2]);
    expect(episodes).toHaveLength(3 * 4 * 4);
    expect(new Set(episodes.map((episode) => episode.group)).size).toBe(12);
    expect(episodes[0]!.policy).toBe("prediction");
    const counts = metrics[0]!;
    const count = (name: string): number => counts[`triplets.${name}`]!;
    expect(count("collected")).toBe(
      count("tooLong") + count("heldOut") + count("fitted") + count("easy") + count("hard"),
    );
    expect(count("kept")).toBeGreaterThan(0);
    expect(counts).toHaveProperty(["eval.valid_seen.success"]);
    for (const name of ["rwml.reward", "rwml.unended", "policy.kl", "policy.clipped", "gradNorm"]) {
      expect(Number.isFinite(metrics[1]![name]), name).toBe(true);
    }
    expect(metrics[3]).toHaveProperty(["heldOut.loss.actions"]);
    expect(counts["heldOut.sampled.reward"]).toBeGreaterThan(0);
    for (const [line, prefix] of [
      [counts, "heldOut"],
      [metrics[1]!, "rwml"],
    ] as const) {
      const shares = ["none", "some", "all"].map((share) => line[`${prefix}.foreseen.${share}`]!);
      expect(shares[0]! + shares[1]! + shares[2]!).toBeCloseTo(1, 10);
    }
    expect(readdirSync(join(whole, "checkpoints"))).toEqual(["000002", "000003"]);
    const forgetting = JSON.parse(readFileSync(join(whole, "forgetting.json"), "utf8"));
    expect(forgetting.weights.all).toBeGreaterThan(0);
    expect(forgetting.weights.all).toBe(summary!["weights.moved"]);
    expect(Object.keys(forgetting.loss)).toEqual(["actions", "states"]);
    expect(forgetting.loss.states.before).toBeCloseTo(metrics[0]!["heldOut.loss.states"]!, 5);
    const none = await weightChange(join(whole, "reference"), join(whole, "reference"));
    expect(none.all).toBe(0);
  });

  it("keeps held-out episodes out of what it learns from", () => {
    const { train, heldOut } = loadTriplets(join(whole, "triplets.jsonl.gz"))!;
    const held = new Set(heldOut.map(({ source }) => source));
    expect(train.filter(({ source }) => held.has(source))).toEqual([]);
    expect(heldOut.length).toBeGreaterThan(0);
  });

  it("resumes after an interruption with the same numbers", async () => {
    const cut = join(parent, "cut");
    const controller = new AbortController();
    const interrupted = rwmlRun(tiny(), {
      folder: cut,
      signal: controller.signal,
      onMetrics: (line) => line.update === 1 && controller.abort(),
    });
    await expect(interrupted).rejects.toThrow(/abort/);
    await rwmlRun(tiny(), { folder: cut, resume: true });
    expect(recorded(cut)).toEqual(recorded(whole));
  });

  it("refuses to resume with another reward", async () => {
    await expect(rwmlRun(tiny(), { folder: whole, resume: true, reward: equal })).rejects.toThrow(
      /was started with the reward ROUGE-L, but now it is all equal/,
    );
  });

  it.runIf(isWhole)("can be the start of task RL, and can be evaluated", async () => {
    const config = tinyConfig({
      model: { start: whole },
      warmStart: { episodes: 0 },
      updates: 1,
      evaluation: { every: 0 },
    });
    const folder = join(parent, "rl");
    await trainRun(config, { folder });
    const { all } = await weightChange(
      join(whole, "checkpoints", "000003"),
      join(folder, "reference"),
    );
    expect(all).toBe(0);
    const out = join(parent, "eval");
    const { code, stdout } = await runCli([
      "eval",
      "--checkpoint",
      whole,
      "--tasks",
      "2",
      "--out",
      out,
    ]);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^all +2 /m);
  });
});

describe("bad input", () => {
  it("refuses settings of a filter that is off", async () => {
    await expect(
      rwmlRun(tiny({ filter: { keep: 0.5 } }), { folder: join(parent, "no-filter") }),
    ).rejects.toThrow(/filter\.keep: 0\.5 would change nothing: it needs filter\.share above 0/);
  });

  it.runIf(isWhole)(
    "if all rewards are equal, skips the update, counts it, and keeps the weights",
    async () => {
      const folder = join(parent, "equal");
      // Predictions of one token never end, so none can be the state itself.
      await rwmlRun(tiny({ predictionTokens: 1, updates: 2, filter: { share: 0 } }), {
        folder,
        reward: equal,
      });
      const { metrics, summary } = recorded(folder);
      expect(metrics[1]).toMatchObject({
        "rwml.equalGroups": 4,
        "rwml.skipped": 1,
        "train.tokens": 0,
      });
      expect(metrics[1]!["rwml.unended"]! + metrics[1]!["rwml.empty"]!).toBe(16);
      expect(summary!["weights.moved"]).toBe(0);
    },
  );

  it("nothing left to learn from is an error with the numbers", async () => {
    const folder = join(parent, "none");
    // Question and answer together must fit in 256 tokens.
    const config = tiny({ predictionTokens: 250 });
    await expect(rwmlRun(config, { folder, reward: equal })).rejects.toThrow(
      /not enough triplets to learn from \(episodes 12, .*lower predictionTokens/,
    );
    expect(openRun(folder, fail).manifest.status).toBe("failed");
  });
});

describe("variants", () => {
  it.runIf(isWhole)(
    "adds task rewards, cuts recorded episodes, tracks a text, judges states",
    async () => {
      const server = createServer((request, reply) => {
        request
          .resume()
          .on("end", () =>
            reply.end(JSON.stringify({ choices: [{ message: { content: "no" } }] })),
          );
      });
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
      const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
      const played = join(parent, "played");
      await runCli([
        ...[
          "rollout",
          "--policy",
          "random",
          "--groups",
          "8",
          "--group-size",
          "1",
          "--step-limit",
          "3",
        ],
        ...["--env.rooms", "1", "--env.receptacles", "4", "--env.objects", "3", "--out", played],
      ]);
      const text = join(parent, "text.txt");
      writeFileSync(text, "The desk 1 is here.\n\nYou hold nothing.\n");
      const folder = join(parent, "variants");
      try {
        await rwmlRun(
          tiny({
            collect: { runs: [played] },
            filter: { share: 0 },
            reward: { name: "judge", baseUrl, model: "m" },
            task: { groups: 2, groupSize: 3 },
            heldOut: { share: 0.3, triplets: 6, text },
            updates: 1,
          }),
          { folder },
        );
      } finally {
        server.close();
      }
      const { episodes, metrics, summary } = recorded(folder);
      expect(episodes.filter(({ policy }) => policy === "engine")).toHaveLength(6);
      expect(metrics[1]).toHaveProperty(["train.success"]);
      expect(summary).toHaveProperty(["heldOut.loss.text.change"]);
    },
  );
});

describe("pawl rwml", () => {
  it("takes environment and prompt from the run it starts from, and resumes a run", async () => {
    const out = join(parent, "cli");
    const { code, stdout, stderr } = await runCli([
      ...["rwml", "--model.start", warm, "--out", out, "--reward", "rouge", "--updates", "1"],
      ...["--collect.episodes", "8", "--triplets", "2", "--prediction-tokens", "12"],
      ...["--held-out.share", "0.3", "--filter.share", "0", "--evaluation.every", "0"],
    ]);
    expect([code, stderr]).toEqual([0, expect.stringContaining("update 1/1")]);
    expect(stdout).toMatch(/weights\.moved +[\d.e-]+/);
    const { config } = openRun(out, fail).manifest;
    expect(config).toMatchObject({
      env: { rooms: 1, receptacles: 4 },
      prompt: { style: "compact" },
    });
    const again = await runCli(["rwml", "--resume", out]);
    expect([again.code, again.stdout]).toEqual([0, stdout]);
    const wrong = await runCli(["rwml", "--resume", warm]);
    expect([wrong.code, wrong.stderr]).toEqual([
      2,
      expect.stringContaining("expected a run of pawl rwml"),
    ]);
    const missing = await runCli(["rwml"]);
    expect(missing.stderr).toContain("--model.start: required, but not given");
  });
});

const encoder = process.env.PAWL_ENCODER ?? "";

describe.skipIf(!existsSync(encoder))(
  "with a pretrained encoder (skipped unless PAWL_ENCODER names a folder with one)",
  () => {
    it("rewards by meaning, and a threshold can be seen and chosen", async () => {
      const cache = join(parent, "cache");
      const folder = join(parent, "embedded");
      const reward = { threshold: 0.5, graded: true, encoder: { from: encoder, cache } };
      await rwmlRun(tiny({ reward, updates: 1, filter: { share: 0 } }), { folder });
      expect(recorded(folder).metrics[1]!["rwml.reward"]).toBeGreaterThan(0);
      const file = join(parent, "threshold.html");
      const { code, stdout } = await runCli([
        ...["wm", "threshold", "--tasks", "8", "--encoder.from", encoder, "--encoder.cache", cache],
        ...["--out", file, "--json"],
      ]);
      expect(code).toBe(0);
      const { best, dimension } = JSON.parse(stdout);
      expect(dimension).toBe(384);
      expect(best.accepted["other moment"]).toBeLessThan(best.accepted.paraphrase);
      expect(readFileSync(file, "utf8")).toContain("Distances of states");
    });
  },
);

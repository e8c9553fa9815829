import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findEnvKind } from "@pawl/core/envs/registry.js";
import type { PawOptions } from "@pawl/core/objectives/paw-options.js";
import { prepareUpdate } from "@pawl/core/update/update.js";
import { groupsOf } from "@pawl/core/update/update-testing.js";
import { describe, expect, it } from "vitest";
import { laptop } from "../../../recipes/laptop.js";
import { jobsOf, startsOf } from "./matrix.js";
import { type ComparisonOptions, comparisonOptions } from "./options.js";
import { estimate, pairedDifference } from "./statistics.js";

const options = (changes: object = {}): ComparisonOptions =>
  comparisonOptions(findEnvKind("household")).parse({ train: laptop, ...changes });

describe("the matrix", () => {
  it("has every arm with every seed, from one warm start per setting", () => {
    const jobs = jobsOf(options({ settings: ["default", "sparse"], seeds: [3, 4], out: "o" }));
    expect(jobs).toHaveLength(2 * 2 * 4);
    expect(jobs.slice(0, 4).map((job) => job.id)).toEqual([
      "default/grpo/3",
      "default/grpo+paw/3",
      "default/grpo+fixed/3",
      "default/grpo+ce/3",
    ]);
    const starts = startsOf(options({ out: "o" }), jobs);
    expect(starts.map(({ config }) => [config.updates, config.warmStart.episodes])).toEqual([
      [0, laptop.warmStart.episodes],
      [0, Math.round(laptop.warmStart.episodes / 3)],
    ]);
    const last = jobs.at(-1)!;
    expect(last.folder).toBe(join("o", "sparse", "grpo+ce", "seed-4"));
    expect(last.config).toMatchObject({
      seed: 4,
      model: { start: join("o", "sparse", "start", "model") },
      warmStart: { episodes: 0 },
      updates: laptop.updates,
      paw: { loss: "ce", lambda: "adaptive" },
    });
  });

  it("changes what an arm names, and nothing else", () => {
    const arms = ["plain+kl=0.1", "fixed", "alpha=0.25+rho=0.5", "ce+alpha=0.5+full", "lambda=3"];
    const jobs = jobsOf(options({ arms, seeds: [0], algorithms: ["grpo", "ppo"] }));
    expect(jobs.map((job) => job.arm)).toEqual([
      "grpo+kl=0.1",
      "grpo+fixed",
      "grpo+alpha=0.25+rho=0.5",
      "grpo+ce+alpha=0.5+full",
      "grpo+lambda=3",
      "ppo+kl=0.1",
      "ppo+fixed",
      "ppo+alpha=0.25+rho=0.5",
      "ppo+ce+alpha=0.5+full",
      "ppo+lambda=3",
    ]);
    expect(jobs[0]!.config).toMatchObject({ paw: { loss: "off" }, objective: { kl: 0.1 } });
    expect(jobs[1]!.config.paw).toMatchObject({ loss: "cmae", lambda: 1 });
    const controls = ["shuffled", "foreign", "effect", "alternating", "beta2=0.95"];
    const [shuffled, foreign, effect, alternating, beta2] = jobsOf(
      options({ arms: controls, seeds: [0] }),
    ).map(({ config }) => config);
    expect(shuffled!.paw).toMatchObject({ loss: "cmae", targets: "shuffled", every: 1 });
    expect(foreign!.paw.targets.split("\n").length).toBeGreaterThan(10);
    const seen = new RegExp(effect!.paw.until!);
    const arrived = "You arrive at drawer 2. The drawer 2 is open. In it, you see a pen 1.";
    expect(arrived.slice(0, arrived.search(seen))).toBe(
      "You arrive at drawer 2. The drawer 2 is open.",
    );
    expect("You pick up the pen 1 from the desk 1.".search(seen)).toBe(-1);
    expect(alternating!.paw).toMatchObject({ loss: "ce", lambda: 0.05, every: 4 });
    expect(beta2!.optimizer).toMatchObject({ beta2: 0.95 });
    // Shared settings of world modelling are no arm's without it.
    const [plain] = jobsOf(options({ arms: ["plain"], train: { paw: { alpha: 0.5 } } }));
    expect(plain!.config.paw).toMatchObject({ loss: "off", alpha: 0.75 });
    expect(jobs[2]!.config.paw).toMatchObject({ alpha: 0.25, rho: 0.5, lambda: "adaptive" });
    expect(jobs[3]!.config.paw).toMatchObject({
      loss: "ce",
      alpha: 0.5,
      entropy: "full",
    });
    expect(jobs[4]!.config.paw.lambda).toBe(3);
    expect(jobs[5]!.config.advantage).toMatchObject({
      name: "ppo",
      penalty: laptop.advantage.penalty,
      penaltyPlace: laptop.advantage.penaltyPlace,
      penaltyOn: "invalid",
    });
    const rest = ({
      paw: _,
      advantage: __,
      objective: ___,
      ...config
    }: object & Record<string, unknown>) => config;
    expect(rest(jobs[9]!.config)).toEqual(rest(jobs[0]!.config));
  });

  it("weighs all observation tokens of an update equally in echo, whatever the return", () => {
    const [echo] = jobsOf(options({ arms: ["echo"], seeds: [0] }));
    const step = (observation: number, reward = 0) => ({ action: [-1], observation, reward });
    const groups = groupsOf([
      [{ steps: [step(1), step(4, 10)] }, { steps: [step(2)] }],
      [{ steps: [step(3)] }],
    ]);
    const zeros = groups.map(({ episodes }) => episodes.map(({ steps }) => steps.map(() => 0)));
    const weightsOf = (paw: PawOptions) =>
      prepareUpdate(
        groups,
        { advantages: zeros },
        { paw, aggregation: "token-mean", maxReturn: 10 },
      )
        .sequences.flatMap(({ inputs }) => Array.from(inputs.worldWeight!))
        .filter((weight) => weight > 0);
    expect(echo!.config.paw.loss).toBe("ce");
    expect(weightsOf(echo!.config.paw)).toEqual(new Array(10).fill(Math.fround(0.05 / 10)));
    const later = jobsOf(options({ arms: ["echo+lambda=0.1"], seeds: [0] }))[0]!;
    expect(later.config.paw).toEqual({ ...echo!.config.paw, lambda: 0.1 });
  });

  it("starts arms with actobs and rwml elsewhere, without world modelling unless it is named", () => {
    const given = options({
      settings: ["actions-only"],
      arms: ["plain", "actobs", "paw+rwml", "rwml+actobs=0.5"],
      seeds: [0],
      rwml: { updates: 7 },
      out: "o",
    });
    const jobs = jobsOf(given);
    expect(jobs.map(({ arm, start, config }) => [arm, start, config.paw.loss])).toEqual([
      ["grpo", "", "off"],
      ["grpo+actobs", "actobs", "off"],
      ["grpo+paw+rwml", "rwml", "cmae"],
      ["grpo+rwml+actobs=0.5", "actobs=0.5+rwml", "off"],
    ]);
    expect(jobs[3]!.config.model.start).toBe(
      join("o", "actions-only", "start-actobs=0.5+rwml", "model"),
    );
    const starts = startsOf(given, jobs);
    const weight = ({ config }: (typeof starts)[number]) => config.warmStart.sft.observationWeight;
    expect(starts.map((start) => [start.name, weight(start), start.rwml?.model.start])).toEqual([
      ["", 0, undefined],
      ["actobs", 1, undefined],
      ["rwml", 0, join("o", "actions-only", "start", "model")],
      ["actobs=0.5", 0.5, undefined],
      ["actobs=0.5+rwml", 0.5, join("o", "actions-only", "start-actobs=0.5", "model")],
    ]);
    expect(starts[2]!.rwml).toMatchObject({ updates: 7, stepLimit: laptop.stepLimit });
  });

  it("leaves out what is finished elsewhere, and splits the rest", () => {
    const other = mkdtempSync(join(tmpdir(), "pawl-finished-"));
    const done = join(other, "default", "grpo+ce", "seed-2");
    mkdirSync(done, { recursive: true });
    writeFileSync(join(done, "result.json"), "{}");
    const ids = (changes: object) =>
      jobsOf(options({ finished: [other], ...changes })).map((job) => job.id);
    expect(ids({})).toHaveLength(19);
    expect(ids({})).not.toContain("default/grpo+ce/2");
    expect([...ids({ part: "1/2" }), ...ids({ part: "2/2" })].sort()).toEqual([...ids({})].sort());
  });

  it("joins settings", () => {
    const [job] = jobsOf(options({ settings: ["noise+two-step+actions-only+small"], seeds: [0] }));
    const [start] = startsOf(options(), [job!]);
    expect(start!.config).toMatchObject({
      env: { noise: "all" },
      prompt: { history: 2 },
      model: { start: "small", maxContext: 2 * laptop.model.maxContext },
      warmStart: { sft: { observationWeight: 0 } },
    });
  });

  it("can be split across machines without repeating or omitting a run", () => {
    const ids = (changes: object) => jobsOf(options(changes)).map((job) => job.id);
    const parts = ["1/3", "2/3", "3/3"].flatMap((part) => ids({ part }));
    expect([...parts].sort()).toEqual([...ids({})].sort());
    expect(ids({ only: ["grpo+ce/2", "default/grpo/0"] })).toEqual([
      "default/grpo/0",
      "default/grpo+ce/2",
    ]);
  });

  it("rejects unknown names", () => {
    const refused = (changes: object) => () => {
      const given = options(changes);
      startsOf(given, jobsOf(given));
    };
    expect(refused({ settings: ["nois"] })).toThrow(/--settings: .*Did you mean "noise"/);
    expect(refused({ arms: ["pw"] })).toThrow(/--arms: expected plain, .*got "pw"/);
    expect(refused({ arms: ["alpha=x"] })).toThrow(/--arms: .*got "alpha=x"/);
    expect(refused({ arms: ["alpha=7"] })).toThrow(/invalid run in the comparison: .*\s.*alpha/);
    expect(refused({ only: ["grpo/99"] })).toThrow(/no run "grpo\/99"/);
    expect(refused({ part: "5/4" })).toThrow(/--part: expected 1\/4 to 4\/4/);
    expect(refused({ arms: ["kl=0.1", "plain+kl=0.1"] })).toThrow(
      /kl=0.1 and plain\+kl=0.1 .*same/,
    );
    expect(refused({ arms: ["actobs=0.3"], settings: ["observations"] })).toThrow(
      /is the warm start of this setting/,
    );
    const train = { ...laptop, warmStart: { episodes: 0 } };
    expect(refused({ arms: ["actobs"], train })).toThrow(/--arms: actobs .*there is none/);
  });
});

describe("statistics", () => {
  it("give mean, deviation and Student's interval", () => {
    const { mean, deviation, interval, n } = estimate([1, 2, 3, 4, 5]);
    expect([mean, n]).toEqual([3, 5]);
    expect(deviation).toBeCloseTo(Math.sqrt(2.5), 12);
    // 2.776 · √2.5 / √5
    expect(interval![1] - 3).toBeCloseTo(1.963, 3);
    expect(estimate([7])).toEqual({ mean: 7, n: 1 });
    // Student's t at 40 degrees of freedom is 2.021.
    const many = Array.from({ length: 41 }, (_, i) => i % 2);
    const wide = estimate(many);
    expect(((wide.interval![1] - wide.mean) * Math.sqrt(41)) / wide.deviation!).toBeCloseTo(
      2.021,
      2,
    );
  });

  it("pair by seed", () => {
    const value = new Map([
      [0, 3],
      [1, 5],
      [7, 100],
    ]);
    const reference = new Map([
      [0, 1],
      [1, 4],
      [2, 0],
    ]);
    expect(pairedDifference(value, reference)).toMatchObject({ mean: 1.5, n: 2 });
    expect(pairedDifference(value, new Map())).toBeUndefined();
  });
});

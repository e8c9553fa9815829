import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { laptop } from "../../recipes/laptop.js";
import { findEnvKind } from "../envs/registry.js";
import { type PawOptions, pawOptions } from "../objectives/paw-options.js";
import { createRun } from "../runs/run-folder.js";
import { prepareUpdate } from "../update/update.js";
import { groupsOf } from "../update/update-testing.js";
import { comparisonMarkdown } from "./markdown.js";
import { jobsOf, startsOf } from "./matrix.js";
import { type ComparisonOptions, comparisonOptions } from "./options.js";
import { trainingFolder } from "./result-file.js";
import { findResults, sumUp } from "./results.js";
import { runFacts } from "./run-facts.js";
import { estimate, pairedDifference } from "./statistics.js";
import { writeResults } from "./write-results.js";

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
    const arms = ["plain+kl=0.1", "fixed", "alpha=0.25+rho=0.5", "ce+cap=0.1+skip", "lambda=3"];
    const jobs = jobsOf(options({ arms, seeds: [0], algorithms: ["grpo", "ppo"] }));
    expect(jobs.map((job) => job.arm)).toEqual([
      "grpo+kl=0.1",
      "grpo+fixed",
      "grpo+alpha=0.25+rho=0.5",
      "grpo+ce+cap=0.1+skip",
      "grpo+lambda=3",
      "ppo+kl=0.1",
      "ppo+fixed",
      "ppo+alpha=0.25+rho=0.5",
      "ppo+ce+cap=0.1+skip",
      "ppo+lambda=3",
    ]);
    expect(jobs[0]!.config).toMatchObject({ paw: { loss: "off" }, objective: { kl: 0.1 } });
    expect(jobs[1]!.config.paw).toMatchObject({ loss: "cmae", lambda: 1 });
    // Shared settings of world modelling are no arm's without it.
    const [plain] = jobsOf(options({ arms: ["plain"], train: { paw: { alpha: 0.5 } } }));
    expect(plain!.config.paw).toMatchObject({ loss: "off", alpha: 0.75 });
    expect(jobs[2]!.config.paw).toMatchObject({ alpha: 0.25, rho: 0.5, lambda: "adaptive" });
    expect(jobs[3]!.config.paw).toMatchObject({
      loss: "ce",
      gradientCap: 0.1,
      skipWithoutSignal: "updates",
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
    const [echo, length] = jobsOf(options({ arms: ["echo", "ce-length"], seeds: [0] }));
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
    // The other arm keeps PaW's selection, mean and balance.
    expect(length!.config.paw).toEqual({
      ...pawOptions.parse({}),
      loss: "ce",
      gradientLength: "cmae",
    });
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
    const weight = laptop.warmStart.sft.observationWeight;
    expect(refused({ arms: [`actobs=${weight}`] })).toThrow(/is the warm start of this setting/);
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

describe("results", () => {
  const parent = mkdtempSync(join(tmpdir(), "pawl-bench-"));
  const config = jobsOf(options())[0]!.config;
  /** A finished job without its training. */
  const finished = (
    out: string,
    arm: string,
    seed: number,
    success: number,
    more: object = {},
  ): void => {
    const folder = join(parent, out, "default", arm, `seed-${seed}`);
    mkdirSync(folder, { recursive: true });
    const run = createRun(
      { folder: trainingFolder(folder), kind: "train", seed, config },
      expect.unreachable,
    );
    run.recordMetrics({ update: -1, "eval.valid_seen.success": 0.1 });
    run.recordMetrics({ update: 0, "gradient.cosine": 0.5, "seconds.learn": 3, "memory.mib": 7 });
    run.recordMetrics({ update: 0, "eval.valid_seen.success": success, "gradient.cosine": -0.25 });
    run.finish("done");
    const splits = { valid_seen: { success, episodes: 500, broken: 0, ...more } };
    const result = { setting: "default", algorithm: "grpo", arm, seed, splits, seconds: 60 };
    const rest = { finishedAt: "2026-01-01T00:00:00.000Z", machine: "one" };
    writeFileSync(join(folder, "result.json"), JSON.stringify({ ...result, ...rest }));
  };
  finished("a", "grpo", 0, 0.5);
  finished("a", "grpo", 1, 0.6);
  finished("a", "grpo+ce", 0, 0.4);
  finished("b", "grpo+ce", 1, 0.7);
  // The same run again, as in a copied folder.
  finished("b", "grpo", 1, 0.6);

  it("of several folders are merged, each run once, and paired", () => {
    const results = sumUp(findResults([join(parent, "a"), join(parent, "b")], expect.unreachable), {
      command: "pawl bench observations",
      goal: 0.6,
    });
    expect(results.runs).toHaveLength(4);
    expect(results.arms.map(({ arm, seeds }) => [arm, seeds])).toEqual([
      ["grpo", [0, 1]],
      ["grpo+ce", [0, 1]],
    ]);
    const ce = results.arms[1]!.splits.valid_seen!;
    expect(ce.mean).toBeCloseTo(0.55, 12);
    expect(ce.episodes).toBe(1000);
    expect(ce.difference!.mean).toBeCloseTo(0, 12);
    expect(results.arms[0]!.splits.valid_seen).not.toHaveProperty("difference");
    expect(results.arms[1]!.course.valid_seen![0]!.mean).toBeCloseTo(0.1, 12);
    expect(results.arms[1]!.course.valid_seen![1]!.mean).toBeCloseTo(0.55, 12);
    expect(results.arms[1]!.updatesToGoal.valid_seen).toEqual({ 0: null, 1: 1 });
    expect(results.arms[1]!.learning).toEqual({ "gradient.cosine": { begin: 0.5, end: -0.25 } });
    const markdown = comparisonMarkdown(results);
    // Results from before types were kept have no such tables.
    expect(markdown).not.toMatch(/by task type|Steps of an episode/);
    expect(markdown).toMatch(/^\| grpo\+ce \| 10\.0 \| 55\.0 \| – 1 +\|$/m);
    expect(markdown).toMatch(/^\| grpo\+ce \| 0\.5 → −0\.25 \|$/m);
    expect(markdown).toMatch(/^\| grpo\+ce \| 3\.00 +\| 7 +\|/m);
    expect(markdown).toMatch(
      /^\| grpo\+ce \| 0 1 +\| 55\.0 ± 21\.2 \| .*\| \+0\.0 \| −127\.1 to 127\.1 \(n 2\) \|$/m,
    );
    const paths = writeResults(results, join(parent, "all"));
    expect(paths.map((path) => path.slice(parent.length))).toEqual([
      "/all/results.json",
      "/all/results.md",
      "/all/default-valid_seen.svg",
      "/all/default.html",
    ]);
  });

  it("keep task types, score and steps, as the papers' tables have them", () => {
    const types = (buy: number, look: number) => ({
      buy: { success: buy, score: 0.5, episodes: 1, broken: 0 },
      look: { success: look, score: 0.75, episodes: 3, broken: 0 },
    });
    const scored = (arm: string, seed: number, buy: number, look: number, score: number) =>
      finished("c", arm, seed, (buy + 3 * look) / 4, { types: types(buy, look), score, steps: 4 });
    scored("grpo", 0, 0, 0.2, 0.4);
    scored("grpo", 1, 1, 0.2, 0.6);
    scored("grpo+paw", 0, 1, 0.4, 0.5);
    scored("grpo+paw", 1, 1, 0.4, 0.7);
    const results = sumUp(findResults([join(parent, "c")], expect.unreachable), {
      command: "c",
      goal: 0.6,
    });
    const paw = results.arms[1]!.splits.valid_seen!;
    expect(paw.types!.look!.difference!.mean).toBeCloseTo(0.2, 12);
    // Types weigh the same, whatever their number of episodes.
    expect(paw.meanOfTypes!.mean).toBeCloseTo(0.7, 12);
    expect(paw.score!.difference!.mean).toBeCloseTo(0.1, 12);
    const markdown = comparisonMarkdown(results);
    expect(markdown).toMatch(/^\| arm +\| buy +\| look +\| all +\| mean of types \|$/m);
    expect(markdown).toMatch(
      /^\| grpo +\| 50\.0 ± 70\.7 \| 20\.0 ± 0\.0 \| 27\.5 ± 17\.7 \| 35\.0 ± 35\.4 +\|$/m,
    );
    expect(markdown).toMatch(
      /^\| grpo\+paw \| 60\.0 ± 14\.1 \|.*\| \+10\.0 \|.*\| 4\.0 ± 0\.0 \| \+0\.0/m,
    );
  });

  it("sum up success in training by tenths of the updates, the last one shorter", () => {
    const lines = Array.from({ length: 21 }, (_, update) => ({ update, "train.success": update }));
    const tenths = Array.from({ length: 10 }, (_, i) => [2 * i + 2, 2 * i + 0.5]);
    expect(runFacts(lines).training).toEqual({ ...Object.fromEntries(tenths), 21: 20 });
    expect(runFacts(lines.slice(0, 2)).training).toEqual({ 1: 0, 2: 1 });
    expect(runFacts([]).training).toEqual({});
    for (const seed of [0, 1]) finished("d", "grpo", seed, 0.5);
    const found = findResults([join(parent, "d")], expect.unreachable);
    const jobs = found.jobs.map((job) => ({ ...job, training: { 2: job.seed, 3: 0.25 } }));
    const results = sumUp({ ...found, jobs }, { command: "d", goal: 0.6 });
    expect(comparisonMarkdown(results)).toMatch(/^\| grpo +\| 50\.0 \| 25\.0 \|$/m);
    expect(writeResults(results, join(parent, "d-all"))).toContain(
      join(parent, "d-all", "default-in-training.svg"),
    );
  });

  it("are those after some updates if asked, by the runs' own evaluations, cut off or not", () => {
    for (const [arm, seed, look, last] of [
      ["grpo", 0, 0.2, 3],
      ["grpo+ce", 0, 0.8, 4],
      ["grpo+ce", 1, 0.4, 1],
    ] as const) {
      const folder = join(parent, "e", "default", arm, `seed-${seed}`);
      mkdirSync(folder, { recursive: true });
      const run = { folder: trainingFolder(folder), kind: "train", seed, config };
      const { recordMetrics, finish } = createRun(run, expect.unreachable);
      for (let update = 0; update <= last; update++) {
        const split = "eval.valid_seen";
        const types = { [`${split}.success.buy`]: 0, [`${split}.success.look`]: look };
        const sums = { [`${split}.success`]: look / 2, [`${split}.steps`]: update };
        const evaluated = update % 2 === 0 ? { ...sums, [`${split}.episodes`]: 10, ...types } : {};
        recordMetrics({ update, "train.success": update / 10, "seconds.learn": 2, ...evaluated });
      }
      finish("failed");
    }
    const e = [join(parent, "e")];
    expect(findResults(e, expect.unreachable).jobs).toEqual([]);
    const found = findResults(e, expect.unreachable, 3);
    expect(found.left).toEqual(["default/grpo+ce/seed-1"]);
    const results = sumUp(found, { command: "e", goal: 0.6, at: 3 });
    expect(results.arms.map(({ arm, seeds }) => [arm, seeds])).toEqual([
      ["grpo", [0]],
      ["grpo+ce", [0]],
    ]);
    const { valid_seen: ce } = results.arms[1]!.splits;
    expect(ce).toMatchObject({ mean: 0.4, episodes: 10, steps: { mean: 2 } });
    expect(ce!.difference!.mean).toBeCloseTo(0.3, 12);
    expect(ce!.types!.look!.mean).toBe(0.8);
    expect(ce!.meanOfTypes!.mean).toBe(0.4);
    // What came later does not count: neither updates nor evaluations, nor their time.
    expect(results.arms[1]!.training).toMatchObject({ 1: { mean: 0 }, 3: { mean: 0.2 } });
    expect(Object.keys(results.arms[1]!.training)).toHaveLength(3);
    expect(Object.keys(results.arms[1]!.course.valid_seen!)).toEqual(["1", "3"]);
    expect(results.seconds).toBe(12);
    const markdown = comparisonMarkdown(results);
    expect(markdown).toMatch(/As they were after 3 updates, by their own evaluations/);
    expect(markdown).not.toMatch(/fewer tasks|Score on|\| training/);
    expect(findResults(e, expect.unreachable, 2).jobs).toEqual([]);
    // A number that was changed by hand is said.
    const metrics = join(found.jobs[0]!.folder, "run", "metrics.jsonl");
    writeFileSync(
      metrics,
      readFileSync(metrics, "utf8").replace(/"train.success":0.1/, '"train.success":0.9'),
    );
    const problems: string[] = [];
    findResults(e, (message) => problems.push(message), 3);
    expect(problems.join()).toMatch(/metrics\.jsonl/);
  });

  it("of a missing folder are an error that says so", () => {
    expect(() => findResults([join(parent, "nowhere")], expect.unreachable)).toThrow(
      /nowhere does not exist/,
    );
  });
});

import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findEnvKind } from "@pawl/core/envs/registry.js";
import { createRun } from "@pawl/core/runs/run-folder.js";
import { describe, expect, it } from "vitest";
import { laptop } from "../../../recipes/laptop.js";
import { claim } from "./claim.js";
import { comparisonMarkdown } from "./markdown.js";
import { jobsOf } from "./matrix.js";
import { comparisonOptions } from "./options.js";
import { trainingFolder } from "./result-file.js";
import { findResults, sumUp } from "./results.js";
import { runFacts } from "./run-facts.js";
import { writeResults } from "./write-results.js";

describe("results", () => {
  const parent = mkdtempSync(join(tmpdir(), "pawl-bench-"));
  const config = jobsOf(comparisonOptions(findEnvKind("household")).parse({ train: laptop }))[0]!
    .config;
  /** A finished job without its training. */
  const finished = (
    out: string,
    arm: string,
    seed: number,
    success: number,
    more: object = {},
    finishedAt = "2026-01-01T00:00:00.000Z",
  ): void => {
    const folder = join(parent, out, "default", arm, `seed-${seed}`);
    mkdirSync(folder, { recursive: true });
    rmSync(trainingFolder(folder), { recursive: true, force: true });
    const run = createRun(
      { folder: trainingFolder(folder), kind: "train", seed, config },
      expect.unreachable,
    );
    run.recordMetrics({ update: -1, "eval.valid_seen.success": 0.1 });
    run.recordMetrics({ update: 0, "gradient.cosine": 0.5, "seconds.learn": 3, "memory.mib": 7 });
    run.recordMetrics({ update: 0, "eval.valid_seen.success": success, "gradient.cosine": -0.25 });
    run.finish("done");
    const splits = { valid_seen: { success, episodes: 500, broken: 0, ...more } };
    const algorithm = arm.split("+")[0];
    const result = { setting: "default", algorithm, arm, seed, splits, seconds: 60 };
    const rest = { finishedAt, machine: "one" };
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
    expect(markdown).toMatch(/^\| grpo\+ce \| 40\.0, 70\.0 \|$/m);
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

  it("show the world model's gradient as it was learnt, after scaling", () => {
    const lines: Record<string, number>[] = [
      { update: 0, "gradient.world": 4, "world.scale": 0.25 },
      { update: 1, "world.scale": 0.5 },
      { update: 2, "gradient.world": 3 },
    ];
    expect(runFacts(lines).learning["gradient.world"]).toEqual({ begin: 1, end: 3 });
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

  describe("of runs that do not belong together are refused:", () => {
    const merged = (folders: readonly string[], at?: number) =>
      findResults(
        folders.map((folder) => join(parent, folder)),
        expect.unreachable,
        at,
      );
    const claimed = (out: string, arm: string, seed: number, changes: object): void => {
      finished(out, arm, seed, 0.5, {}, `2026-01-0${seed + 1}T00:00:00.000Z`);
      const folder = join(parent, out, "default", arm, `seed-${seed}`);
      claim({ folder, settings: { ...config, seed, ...changes } });
    };

    it("two of the same arm and seed", () => {
      claimed("two-a", "grpo", 0, {});
      claimed("two-b", "grpo", 0, {});
      // Copies of one run.
      expect(merged(["two-a", "two-b"]).jobs).toHaveLength(1);
      finished("two-b", "grpo", 0, 0.5, {}, "2026-02-01T00:00:00.000Z");
      expect(() => merged(["two-a", "two-b"])).toThrow(
        /two-a.*seed-0 and .*two-b.*seed-0 are two runs of the same arm and seed/,
      );
    });

    it("those with other settings than arm and seed have", () => {
      const optimizer = { ...config.optimizer, schedule: "constant" as const };
      claimed("as-a", "grpo", 0, { optimizer, updates: 4 });
      claimed("as-b", "grpo+paw", 0, { optimizer, updates: 4, paw: { loss: "cmae" }, keep: 7 });
      expect(merged(["as-a", "as-b"]).jobs).toHaveLength(2);
      claimed("as-c", "grpo+paw", 1, { optimizer, updates: 4, paw: { loss: "ce" } });
      expect(() => merged(["as-a", "as-b", "as-c"])).toThrow(
        /as-b.*and .*as-c.*cannot be compared.*: --train.paw.loss "cmae" and "ce"\. /,
      );
      claimed("as-d", "grpo", 1, { optimizer: { ...optimizer, learningRate: 0.5 }, updates: 4 });
      expect(() => merged(["as-a", "as-d"])).toThrow(
        /--train.optimizer.learning-rate .* and 0.5\./,
      );
      expect(() => merged(["as-b", "as-d"])).toThrow(
        /--train.optimizer.learning-rate .* and 0.5\./,
      );
      // The penalty is an arm's only if the arm is named after it; estimators have settings of their own.
      const objective = { ...config.objective, kl: 0.5 };
      for (const [arm, isRefused] of [
        ["grpo+ce", true],
        ["grpo+kl=0.5", false],
        ["gigpo", true],
      ] as const) {
        const advantage = arm === "gigpo" ? { name: arm } : config.advantage;
        claimed(`as-${arm}`, arm, 0, { optimizer, updates: 4, objective, advantage });
        const both = () => merged(["as-a", `as-${arm}`]).jobs.length;
        if (isRefused) expect(both, arm).toThrow(/: --train.objective.kl 0 and 0.5\./);
        else expect(both(), arm).toBe(2);
      }
      // Longer runs can be compared as they were before, unless the learning rate knew the end.
      claimed("as-e", "grpo+echo", 0, { optimizer, updates: 8 });
      expect(() => merged(["as-a", "as-e"])).toThrow(/--train.updates 4 and 8\./);
      expect(merged(["as-a", "as-e"], 1).jobs).toHaveLength(2);
      const cosine = { ...optimizer, schedule: "cosine" };
      claimed("as-f", "grpo", 0, { optimizer: cosine, updates: 4 });
      claimed("as-g", "grpo+echo", 0, { optimizer: cosine, updates: 8 });
      expect(() => merged(["as-f", "as-g"], 1)).toThrow(/--train.updates 4 and 8\./);
    });

    it("pairs that began with different weights; of different seeds they are named", () => {
      const began = (out: string, success: number, weights?: string): void => {
        const folder = join(parent, out, "default", "start");
        mkdirSync(folder, { recursive: true });
        const splits = { valid_seen: { success, episodes: 500, broken: 0 } };
        const rest = { phases: { training: 1 }, seconds: 1, finishedAt: out, machine: "one" };
        const result = { setting: "default", splits, ...rest, ...(weights && { weights }) };
        writeFileSync(join(folder, "result.json"), JSON.stringify(result));
      };
      const markdown = (...folders: readonly string[]): string =>
        comparisonMarkdown(sumUp(merged(folders), { command: "c", goal: 0.6 }));
      claimed("of-a", "grpo", 0, {});
      claimed("of-b", "grpo+paw", 0, { paw: { loss: "cmae" } });
      claimed("of-c", "grpo", 1, {});
      began("of-a", 0.25, "one");
      began("of-b", 0.26, "one");
      // The same weights, evaluated twice: the first is shown.
      expect(markdown("of-a", "of-b")).toMatch(
        / Before RL: 25\.0 % on valid_seen, 1 s of training\.\n/,
      );
      expect(markdown("of-a", "of-b")).toMatch(/A start is trained once for all seeds/);
      began("of-b", 0.26, "two");
      expect(() => merged(["of-a", "of-b"])).toThrow(
        /of-b.*and .*of-a.*cannot be paired by seed, because they began with different weights/,
      );
      began("of-c", 0.27, "two");
      const both = markdown("of-a", "of-c");
      expect(both).toMatch(/Before RL in .*of-a: 25\.0 %.*Before RL in .*of-c: 27\.0 %/);
      expect(both).toMatch(/Seeds began with different starts/);
      began("of-b", 0.26);
      expect(markdown("of-a", "of-b")).toMatch(/it was not recorded whether they are the same/);
    });
  });

  it("of a missing folder are an error that says so", () => {
    expect(() => findResults([join(parent, "nowhere")], expect.unreachable)).toThrow(
      /nowhere does not exist/,
    );
  });
});

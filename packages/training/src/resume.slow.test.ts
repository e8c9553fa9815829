/**
 * A run resumed with other settings: what may change, what is refused, and what the record says.
 */
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { changedOnTheWay, readManifest, writeManifest } from "@pawl/core/runs/manifest.js";
import { openRun } from "@pawl/core/runs/run-folder.js";
import { optimizerOptions } from "@pawl/core/train/schedule.js";
import { runCli } from "@pawl/pawl/cli/testing.js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { trainConfigOf, trainConfigsOf } from "./recorded-config.js";
import { replayRun } from "./replay.js";
import { resumeChanges, scheduleNotice } from "./resume.js";
import { trainRun } from "./run.js";
import { tinyConfig } from "./testing.js";

const parent = mkdtempSync(join(tmpdir(), "pawl-resume-"));
afterAll(() => rmSync(parent, { recursive: true, force: true }));
const fail = (message: string): never => {
  throw new Error(message);
};

const done = join(parent, "done");
beforeAll(() =>
  trainRun(
    tinyConfig({
      updates: 2,
      evaluation: { every: 0 },
      minibatch: 8,
      optimizer: { schedule: "cosine", warmup: 0, learningRate: 1e-3 },
    }),
    { folder: done },
  ),
);

function copyOf(name: string): string {
  const copy = join(parent, name);
  cpSync(done, copy, { recursive: true });
  return copy;
}

describe("a finished run", () => {
  it("resumes with more updates, says so in its record, and can still be replayed", async () => {
    const run = copyOf("longer");
    const rates = () =>
      openRun(run, fail)
        .metrics()
        .map((line) => line.learningRate);
    const before = rates();
    expect(before[1]).toBeGreaterThan(before[2]!);
    const { code, stderr } = await runCli([
      ...["train", "--resume", run, "--updates", "4", "--checkpoint-every", "2"],
      ...[
        "--evaluation.every",
        "4",
        "--evaluation.tasks",
        "2",
        "--evaluation.splits",
        "valid_seen",
      ],
    ]);
    expect([code, stderr]).toEqual([0, expect.stringContaining("update 4/4")]);
    expect(stderr).toMatch(
      /learning rate now falls over 4 updates instead of 2 .*it resumes at \S+, where it would have been 0/,
    );
    const { status, resumes } = readManifest(run);
    expect(status).toBe("done");
    expect(resumes).toMatchObject([
      {
        update: 2,
        changed: {
          updates: { from: 2, to: 4 },
          checkpointEvery: { from: 1, to: 2 },
          "evaluation.every": { from: 0, to: 4 },
        },
      },
    ]);
    const metrics = openRun(run, fail).metrics();
    expect(metrics.map((line) => line.update)).toEqual([-1, 0, 1, 2, 3]);
    expect(metrics[4]).toHaveProperty(["eval.valid_seen.success"]);
    // The first two kept their learning rates; the third is higher than the second, which was near
    // the end.
    expect(rates().slice(0, 3)).toEqual(before);
    expect(rates()[3]!).toBeGreaterThan(before[2]!);
    const at = trainConfigsOf(run);
    expect([at(1).updates, at(2).updates]).toEqual([2, 4]);
    const replayed = [];
    for await (const one of replayRun(openRun(run, fail), { losses: true, tolerance: 1e-3 }))
      replayed.push(one);
    expect(replayed.flatMap(({ divergences }) => divergences)).toEqual([]);
    // The first update is learnt again with the total at the time: two updates.
    expect(replayed.map(({ learnt }) => learnt)).toEqual([true, false, true, false]);
    expect(replayed[0]!.compared).toContain("learningRate");
    expect(replayed[2]!.compared).toContain("learningRate");
  });

  it("goes on with another λ, and every update is replayed with the λ that it had", async () => {
    const run = copyOf("lambda");
    const flags = ["--updates", "3", "--evaluation.every", "0", "--paw.lambda", "0.25"];
    const { code, stderr } = await runCli(["train", "--resume", run, ...flags]);
    expect([code, stderr]).toEqual([
      0,
      expect.stringContaining("paw.lambda: 0.25 from update 3 on, adaptive before"),
    ]);
    const at = trainConfigsOf(run);
    expect([1, 2].map((update) => at(update).paw.lambda)).toEqual(["adaptive", 0.25]);
    expect(openRun(run, fail).metrics().at(-1)!["world.lambda"]).toBe(0.25);
    expect([...changedOnTheWay(readManifest(run))]).toEqual([
      ["paw.lambda", "0.25 from update 3 (before: adaptive)"],
    ]);
    const replayed = [];
    for await (const one of replayRun(openRun(run, fail), { losses: true, tolerance: 1e-3 }))
      replayed.push(one);
    expect(replayed.flatMap(({ divergences }) => divergences)).toEqual([]);
    expect(replayed.map(({ learnt }) => learnt)).toEqual([true, false, true]);
    expect(replayed[2]!.compared).toContain("world.lambda");
  });

  it("resumes in a copy if --out names one, and is itself left alone", async () => {
    const manifest = readFileSync(join(done, "manifest.json"), "utf8");
    const out = join(parent, "copy");
    const args = ["train", "--resume", done, "--out", out];
    const refused = await runCli([...args, "--groups", "3"]);
    expect([refused.code, refused.stderr]).toEqual([2, expect.stringMatching(/--groups cannot/)]);
    const { code } = await runCli([...args, "--updates", "3"]);
    expect(code).toBe(0);
    expect(readFileSync(join(done, "manifest.json"), "utf8")).toBe(manifest);
    expect(readManifest(out)).toMatchObject({ status: "done", copiedFrom: done });
    expect(openRun(out, fail).metrics()).toHaveLength(4);
  });
});

describe("settings that cannot change are refused by name, and nothing is touched", () => {
  it.each([
    [
      ["--groups", "8", "--seed", "1"],
      /--groups cannot change on a resumed run: .* was started with 2, not 8.*\n--seed cannot change/,
    ],
    [["--engine.lora-rank", "4"], /--engine.lora-rank cannot change/],
    [["--env.objects", "2"], /--env.objects cannot change/],
    [["--env", "alfworld"], /--env cannot change on a resumed run: .* "household", not "alfworld"/],
    [["--advantage", "ppo"], /--advantage cannot change/],
    [["--updates", "1"], /--updates: .* has 2 updates already, but 1 were asked for/],
    [["--config", "recipes/paper-alfworld.ts"], /--env cannot change/],
  ])("%j", async (flags, message) => {
    const before = readFileSync(join(done, "manifest.json"), "utf8");
    const { code, stderr } = await runCli(["train", "--resume", done, ...flags]);
    expect(stderr).toMatch(message);
    expect(code).toBeGreaterThan(0);
    expect(readFileSync(join(done, "manifest.json"), "utf8")).toBe(before);
  });

  it("with the file's name if a file asked for it", async () => {
    const file = join(parent, "groups.json");
    writeFileSync(file, JSON.stringify({ groups: 8, updates: 2 }));
    const { stderr } = await runCli(["train", "--resume", done, "--config", file]);
    expect(stderr).toContain(`${file}: groups cannot change on a resumed run`);
  });
});

describe("resumeChanges", () => {
  it("takes settings for where it is computed and how it is watched", () => {
    const engine = { address: "embedded", threads: 1, copy: false, loraRank: 0 };
    const given = { engine: { ...engine, address: "http://gpu:8000", copy: true }, updates: 3 };
    expect(
      resumeChanges({ engine, updates: 2 }, given, { folder: "r", length: "updates" }),
    ).toEqual({
      "engine.address": { from: "embedded", to: "http://gpu:8000" },
      "engine.copy": { from: false, to: true },
      updates: { from: 2, to: 3 },
    });
    const longer = () =>
      resumeChanges({ updates: 2 }, { updates: 3 }, { folder: "r", length: "epochs" });
    expect(longer).toThrow("--updates cannot change");
  });

  it("says nothing about a learning rate that does not change", () => {
    const optimizer = optimizerOptions.parse({ schedule: "constant" });
    const lengths = [
      { length: 1, steps: 10 },
      { length: 2, steps: 20 },
    ] as const;
    expect(scheduleNotice({ optimizer, unit: "updates", step: 10 }, ...lengths)).toBeUndefined();
  });
});

describe("recorded settings", () => {
  const recordWith = (name: string, change: (config: Record<string, unknown>) => object) => {
    const run = copyOf(name);
    const manifest = readManifest(run);
    writeManifest(run, { ...manifest, config: { ...change({ ...manifest.config }) } });
    return run;
  };

  it("that older versions did not have are as they were then", () => {
    const run = recordWith("old", ({ engine: _, checkpointEvery: __, ...rest }) => rest);
    expect(trainConfigOf(run)).toMatchObject({
      engine: { address: "embedded" },
      checkpointEvery: 1,
    });
  });

  it("of a run that measured gradients on a sample and had no critic: neither is guessed", () => {
    const run = recordWith(
      "sampled",
      ({ gradients: _, critic: __, corrections: ___, ...rest }) => ({
        ...rest,
        gradientSample: 8,
      }),
    );
    const config = trainConfigOf(run);
    expect(config).toMatchObject({
      gradients: { every: 0 },
      critic: { weights: "shared" },
      corrections: { episodes: 0 },
    });
    expect(config).not.toHaveProperty("gradientSample");
  });

  it("that this version does not take are refused, with the version that wrote them", () => {
    const unknown = recordWith("newer", (config) => ({ ...config, foresight: 3 }));
    expect(() => trainConfigOf(unknown)).toThrow(
      /newer was recorded by pawl \S+ with settings that this version does not take: foresight is unknown/,
    );
    const wrong = recordWith("wrong", (config) => ({ ...config, groups: "many" }));
    expect(() => trainConfigOf(wrong)).toThrow(/does not take: groups: /);
  });
});

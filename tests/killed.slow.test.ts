/**
 * Real processes and SIGKILL: training that is killed at any moment resumes to the same numbers.
 */
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { dose, isWhole } from "@pawl/core/dose-testing.js";
import { createRandom } from "@pawl/core/random.js";
import { openRun } from "@pawl/core/runs/run-folder.js";
import { tinyConfig } from "@pawl/training/testing.js";
import { describe, expect, it } from "vitest";
import { differences, killAndResume, pawl } from "../bench/shared/killed-runs.js";

const windows = process.platform === "win32";

describe.skipIf(windows)("training", () => {
  it.each([
    ["", { gradients: { every: 1 }, objective: { entropy: 0.01 } }],
    [
      " of branches, hints, redrawn groups and a teacher",
      {
        ...{ groupSize: 4, stepLimit: 10, advantage: { name: "tree" } },
        rollout: { branch: { points: 1 } },
        curriculum: { rate: 0.5, redraw: 2, hints: "expert" },
        distillation: { teacher: "teacher", rewards: true },
      },
    ],
  ])("killed repeatedly reaches the numbers of an uninterrupted run%s", async (_, changes) => {
    const parent = mkdtempSync(join(tmpdir(), "pawl-killed-"));
    const config = join(parent, "config.json");
    if ("distillation" in changes) {
      const teacher = join(parent, "teacher");
      const shown = join(parent, "teacher.json");
      writeFileSync(shown, JSON.stringify(tinyConfig({ updates: 0, seed: 4 })));
      expect(await pawl(["train", "--config", shown, "--out", teacher])).toMatchObject({ code: 0 });
      changes.distillation.teacher = teacher;
    }
    writeFileSync(config, JSON.stringify(tinyConfig({ updates: 4, ...changes })));
    const start = ["--config", config];
    const whole = join(parent, "whole");
    const uninterrupted = await pawl(["train", ...start, "--out", whole]);
    expect(uninterrupted.stderr).toMatch(/update 4\/4/);
    const out = join(parent, "killed");
    const seed = Date.now() % 1_000_000;
    const run = { command: ["train"], start, whole: uninterrupted };
    const { kills } = await killAndResume(run, out, dose(5, 2), createRandom(seed));
    expect(kills).toBeGreaterThan(0);
    expect(differences(whole, out), `seed ${seed}`).toEqual([]);
    expect(openRun(out, expect.unreachable).manifest.status).toBe("done");
  });
});

describe.skipIf(windows)("a comparison", () => {
  it.runIf(isWhole)(
    "killed half-way resumes, repeats nothing, and is assembled from parts",
    async () => {
      const parent = mkdtempSync(join(tmpdir(), "pawl-comparison-"));
      const config = join(parent, "config.json");
      const train = tinyConfig({
        updates: 1,
        evaluation: { every: 1, tasks: 1, splits: ["valid_seen"] },
      });
      const settings = {
        train,
        arms: ["plain", "ce"],
        seeds: [1],
        evalTasks: 2,
        threads: 1,
        jobs: 2,
      };
      writeFileSync(config, JSON.stringify(settings));
      const bench = ["bench", "observations", "--config", config];
      const first = join(parent, "a");
      const second = join(parent, "b");
      // After the warm start's line: its runs have started.
      const killed = await pawl([...bench, "--out", first, "--only", "grpo/1"], {
        afterLines: 1,
        ms: 300,
      });
      expect(killed.stderr).toContain("default/start done");
      const resumed = await pawl([...bench, "--out", first, "--only", "grpo/1"]);
      expect(resumed).toMatchObject({ code: 0 });
      expect(resumed.stderr).not.toContain("start done");
      const model = join(first, "default", "start", "model");
      const rest = ["--out", second, "--only", "grpo+ce/1", "--start", model];
      expect(await pawl([...bench, ...rest])).toMatchObject({ code: 0 });
      const all = join(parent, "all");
      const merge = ["bench", "observations", first, second, "--out", all];
      expect(await pawl(merge)).toMatchObject({ code: 0 });
      const { arms, runs } = JSON.parse(readFileSync(join(all, "results.json"), "utf8"));
      expect(arms.map(({ arm }: { arm: string }) => arm)).toEqual(["grpo", "grpo+ce"]);
      expect(arms[1].splits.valid_seen.difference).toMatchObject({ n: 1 });
      expect(runs[0].splits.valid_seen).toMatchObject({ episodes: 2, broken: 0 });
      const again = await pawl([...bench, "--out", first, "--only", "grpo/1"]);
      expect(again).toMatchObject({ code: 0, stderr: "" });
      const other = await pawl([
        ...bench,
        "--out",
        first,
        "--only",
        "grpo/1",
        "--train.groups",
        "1",
      ]);
      expect(other.stderr).toContain("was started with other settings");
      expect(other.code).toBe(2);
    },
  );
});

/**
 * Real processes and SIGKILL: training that is killed at any moment resumes to the same numbers.
 */
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { createRandom } from "../src/random.js";
import { openRun } from "../src/runs/run-folder.js";
import { tinyConfig } from "../src/train/testing.js";

const cli = join(process.cwd(), "dist/lib/main.js");
const windows = process.platform === "win32";

/** How a process ended, and how many lines it had written. */
interface Ended {
  readonly code: number | null;
  readonly lines: number;
  readonly stderr: string;
}

/** Runs `pawl ARGS` and kills it some time after it has written the given number of lines. */
function pawl(args: readonly string[], kill?: { afterLines: number; ms: number }): Promise<Ended> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [cli, ...args], { stdio: ["ignore", "ignore", "pipe"] });
    let stderr = "";
    const lines = () => stderr.split("\n").length - 1;
    const arm = (): void => {
      if (kill !== undefined && lines() >= kill.afterLines)
        setTimeout(() => child.kill("SIGKILL"), kill.ms);
    };
    arm();
    child.stderr.on("data", (chunk: Buffer) => {
      stderr += chunk.toString();
      arm();
    });
    child.on("error", reject);
    child.on("close", (code) => resolve({ code, lines: lines(), stderr }));
  });
}

/** What a run recorded, except values that depend on the clock and the machine. */
function recorded(folder: string) {
  const run = openRun(folder, expect.unreachable);
  const metrics = run.metrics().map((line) => {
    const timeless = Object.entries(line).filter(([name]) => !/^(seconds|memory)\./.test(name));
    return Object.fromEntries(timeless);
  });
  return { episodes: [...run.episodes()], metrics };
}

describe.skipIf(windows)("training", () => {
  it("killed repeatedly reaches the numbers of an uninterrupted run", async () => {
    const parent = mkdtempSync(join(tmpdir(), "pawl-killed-"));
    const config = join(parent, "config.json");
    // Clipping makes every update depend on earlier gradients.
    const changes = {
      updates: 4,
      paw: { gradientCap: 0.5 },
      gradients: { every: 1 },
      objective: { entropy: 0.01 },
    };
    writeFileSync(config, JSON.stringify(tinyConfig(changes)));
    const whole = join(parent, "whole");
    const uninterrupted = await pawl(["train", "--config", config, "--out", whole]);
    expect(uninterrupted.stderr).toMatch(/update 4\/4/);

    const out = join(parent, "killed");
    const seed = Date.now() % 1_000_000;
    const random = createRandom(seed);
    let kills = 0;
    let ended: Ended;
    do {
      // Killed before the run existed: there is nothing to resume.
      const isThere = existsSync(join(out, "manifest.json"));
      if (!isThere) rmSync(out, { recursive: true, force: true });
      const args = isThere ? ["--resume", out] : ["--config", config, "--out", out];
      const kill = { afterLines: random.int(uninterrupted.lines), ms: random.int(250) };
      ended = await pawl(["train", ...args], kills < 5 ? kill : undefined);
      if (ended.code === null) kills++;
      else expect(ended, `seed ${seed}`).toMatchObject({ code: 0 });
    } while (ended.code !== 0);
    expect(recorded(out), `seed ${seed}`).toEqual(recorded(whole));
    expect(openRun(out, expect.unreachable).manifest.status).toBe("done");
  });
});

describe.skipIf(windows)("a comparison", () => {
  it("killed half-way resumes, repeats nothing, and is assembled from parts", async () => {
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
    const other = await pawl([...bench, "--out", first, "--only", "grpo/1", "--train.groups", "1"]);
    expect(other.stderr).toContain("was started with other settings");
    expect(other.code).toBe(2);
  });
});

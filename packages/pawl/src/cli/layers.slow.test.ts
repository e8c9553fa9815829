/** Settings in layers: a checkpoint's own, overridden by a file, overridden by flags. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readManifest } from "@pawl/core/runs/manifest.js";
import { trainRun } from "@pawl/training/run.js";
import { tinyConfig } from "@pawl/training/testing.js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runCli } from "./testing.js";

const parent = mkdtempSync(join(tmpdir(), "pawl-layers-"));
afterAll(() => rmSync(parent, { recursive: true, force: true }));
const run = join(parent, "run");
beforeAll(() =>
  trainRun(
    tinyConfig({
      updates: 0,
      evaluation: { every: 0, temperature: 0.7 },
      env: { name: "household", rooms: 1, receptacles: 4, objects: 3, families: ["look"] },
    }),
    { folder: run },
  ),
);

function file(name: string, content: object): string {
  const path = join(parent, name);
  writeFileSync(path, JSON.stringify(content));
  return path;
}

const play = async (command: string, ...args: readonly string[]) => {
  const out = mkdtempSync(join(parent, "out-"));
  rmSync(out, { recursive: true });
  const outcome = await runCli([command, "--out", out, ...args]);
  return { ...outcome, config: outcome.code === 0 ? readManifest(out).config : undefined };
};

const env = { name: "household", rooms: 1, receptacles: 4, objects: 3, families: ["look"] };

describe("pawl eval --checkpoint RUN --config FILE", () => {
  it("plays the run's own environment; the file overrides the run's settings and flags override both", async () => {
    const path = file("eval.json", { tasks: 3, temperature: 0.2, stepLimit: 2, env: "household" });
    const { code, config } = await play(
      "eval",
      ...["--checkpoint", run, "--config", path, "--step-limit", "1"],
    );
    expect(code).toBe(0);
    expect(config).toMatchObject({
      env,
      prompt: { style: "compact", history: "all" },
      maxTokens: 6,
      tasks: 3,
      temperature: 0.2,
      stepLimit: 1,
    });
  });

  it("finds the checkpoint if the file gives it", async () => {
    const path = file("checkpoint.json", { checkpoint: run, tasks: 2 });
    const { config } = await play("eval", "--config", path);
    expect(config).toMatchObject({ env, temperature: 0.7, tasks: 2 });
  });

  it.each([
    [{ env: "search" }, [], "env.name search contradicts"],
    [{}, ["--env", "alfworld"], "env.name alfworld contradicts"],
    [{ env: { rooms: 2, receptacles: 8 } }, [], "env.rooms is 2, and in the run of"],
    [{ temperature: "hot" }, [], "bad.json: temperature: expected"],
    [{ rooms: 2 }, [], "bad.json: rooms: unknown setting"],
    [{}, ["--env.objects", "0"], "--env.objects: expected at least"],
  ])("rejects %j %j by name", async (content, flags, message) => {
    const path = file("bad.json", { tasks: 2, ...content });
    for (const command of ["eval", "rollout"]) {
      const given = command === "eval" ? path : file("bad.json", { groups: 1, ...content });
      const outcome = await play(command, "--checkpoint", run, "--config", given, ...flags);
      expect(outcome.stderr).toContain(message);
      expect(outcome.code).toBe(2);
    }
  });

  it("plays another house if a flag says so", async () => {
    const flags = ["--env.rooms", "2", "--env.receptacles", "6", "--tasks", "2"];
    const { code, config } = await play("eval", "--checkpoint", run, ...flags);
    expect([code, config]).toEqual([
      0,
      expect.objectContaining({ env: expect.objectContaining({ rooms: 2, families: ["look"] }) }),
    ]);
  });
});

describe("pawl train --model.start RUN", () => {
  const settings = async (...args: string[]) =>
    JSON.parse((await runCli(["train", "--model.start", run, ...args, "--print-config"])).stdout);

  it("has the run's environment, prompt and limits, and no warm start; flags change them", async () => {
    expect(await settings("--env.objects", "2")).toMatchObject({
      env: { ...env, objects: 2 },
      prompt: { style: "compact", history: "all" },
      maxTokens: 6,
      evaluation: { temperature: 0.7 },
      warmStart: { episodes: 0 },
      model: { start: run },
      // What the run does not say comes from the environment's recipe.
      advantage: { name: "gigpo" },
    });
    expect(await settings("--warm-start.episodes", "9")).toMatchObject({
      warmStart: { episodes: 9 },
    });
  });

  it("is trained elsewhere with that environment's recipe", async () => {
    expect(await settings("--env", "desk")).toMatchObject({ env: { name: "desk" }, maxTokens: 24 });
  });
});

describe("a file for pawl train", () => {
  it("is a complete description: nothing of the default recipe is left", async () => {
    const path = file("whole.json", {
      env: { name: "household", rooms: 1, receptacles: 4, objects: 3 },
      model: { maxContext: 1024 },
      engine: { threads: 1 },
      updates: 0,
      evaluation: { every: 0 },
    });
    const { code, config } = await play("train", "--config", path);
    expect(code).toBe(0);
    // The recipe would have compact prompts and thousands of episodes.
    expect(config).toMatchObject({ prompt: { style: "full" }, warmStart: { episodes: 0 } });
  });
});

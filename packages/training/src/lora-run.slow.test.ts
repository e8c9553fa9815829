/** A run that trains adapters in the embedded engine: resumed, replayed, evaluated, exported. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isWhole } from "@pawl/core/dose-testing.js";
import { close, scores } from "@pawl/core/engine/conformance-tools-testing.js";
import { latestCheckpoint } from "@pawl/core/runs/checkpoints.js";
import { openRun } from "@pawl/core/runs/run-folder.js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { engineFor, engineOptions, openEngine } from "./engines.js";
import { exportModel } from "./export.js";
import { openSavedModel } from "./open-model.js";
import { replayRun } from "./replay.js";
import { trainRun } from "./run.js";
import { findSavedModel } from "./saved-model.js";
import { tinyConfig } from "./testing.js";

const parent = mkdtempSync(join(tmpdir(), "pawl-lora-run-"));
afterAll(() => rmSync(parent, { recursive: true, force: true }));
const [run, straight] = [join(parent, "run"), join(parent, "straight")];
const fail = (message: string): never => {
  throw new Error(message);
};
const ids = [3, 1, 4, 1, 5, 9, 2, 6];
const lora = {
  loraRank: 4,
  loraAlpha: 16,
  loraTargets: ["q_proj", "v_proj", "down_proj"],
} as const;
const config = tinyConfig({
  engine: { threads: 1, ...lora },
  updates: 2,
  optimizer: { learningRate: 0.01, warmup: 0 },
  objective: { entropy: 0, kl: 0.01 },
});

describe("a run with adapters", () => {
  beforeAll(async () => {
    await trainRun({ ...config, updates: 1 }, { folder: run });
    await trainRun(config, { folder: run, resume: true });
    await trainRun(config, { folder: straight });
  });

  it("is the same, byte for byte, if it is resumed", () => {
    const [resumed, whole] = [run, straight].map((folder) => latestCheckpoint(folder)!.folder);
    const files = ["adapter_model.safetensors", "optimizer.safetensors", "model.safetensors"];
    for (const file of files)
      expect(readFileSync(join(resumed!, file)).equals(readFileSync(join(whole!, file)))).toBe(
        true,
      );
    // Moments of everything would be twice as large as the weights.
    const size = (file: string) => statSync(join(whole!, file)).size;
    expect(size("optimizer.safetensors")).toBeLessThan(size("model.safetensors") / 4);
  });

  it("is replayed with the same numbers", async () => {
    const replayed = [];
    for await (const update of replayRun(openRun(run, fail), { losses: true, tolerance: 1e-3 }))
      replayed.push(update);
    expect(replayed.flatMap(({ divergences }) => divergences)).toEqual([]);
    expect(replayed.map(({ learnt }) => learnt)).toEqual([true, true]);
    expect(replayed[1]!.compared).toEqual(expect.arrayContaining(["policy.kl", "gradNorm"]));
    expect(openRun(run, fail).metrics()[2]!["policy.kl"]!).toBeGreaterThan(1e-5);
  });

  it.runIf(isWhole)(
    "gives a model that acts with its adapters, and a plain one when it is exported",
    async () => {
      const saved = findSavedModel(run);
      expect(engineFor(saved.config?.engine)).toMatchObject(lora);
      const opened = await openSavedModel(saved);
      expect(opened.engine.capabilities.lora).toBe(true);
      const learnt = await scores(opened.engine, ids);
      await opened.engine.dispose();
      const out = join(parent, "exported");
      await exportModel(saved, out);
      expect(readdirSync(out)).not.toContain("adapter_model.safetensors");
      const plain = await openSavedModel({ weights: out, tokenizer: out });
      close(await scores(plain.engine, ids), learnt, 1e-4);
      await plain.engine.dispose();
    },
  );
});

it("refuses adapter settings that would have no effect, by name", async () => {
  const open = (settings: object) => openEngine(engineOptions.parse(settings), { folder: run });
  await expect(open({ loraAlpha: 8 })).rejects.toThrow(/^engine.loraAlpha: there are no adapters/);
  await expect(
    open({ address: "http://127.0.0.1:1", loraRank: 4, loraTargets: ["q_proj"] }),
  ).rejects.toThrow(/^engine.loraTargets: only the embedded engine/);
  expect(engineOptions.safeParse({ loraTargets: ["lm_head"] }).success).toBe(false);
});

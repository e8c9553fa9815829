/**
 * Adapters on the PyTorch server: a run with them, its replay, local and remote checkpoints, and a
 * sampler.
 */
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isWhole } from "@pawl/core/dose-testing.js";
import { close, learn, scores, toy } from "@pawl/core/engine/conformance-tools-testing.js";
import type { Engine } from "@pawl/core/engine/engine.js";
import { openRun } from "@pawl/core/runs/run-folder.js";
import { testModel, writeTestModel } from "@pawl/engine-remote/remote/model-testing.js";
import { connectRemoteEngine } from "@pawl/engine-remote/remote/remote-engine.js";
import { withSampler } from "@pawl/engine-remote/sampler/sampler-engine.js";
import { startStandIn } from "@pawl/engine-remote/sampler/server-testing.js";
import {
  findTorchPython,
  startTorchServer,
  type TorchServer,
} from "@pawl/pawl/cli/torch-server.js";
import { engineFor } from "@pawl/training/engines.js";
import { exportModel } from "@pawl/training/export.js";
import { openModel, openSavedModel } from "@pawl/training/open-model.js";
import { replayRun } from "@pawl/training/replay.js";
import { trainRun } from "@pawl/training/run.js";
import { findSavedModel } from "@pawl/training/saved-model.js";
import { tinyConfig } from "@pawl/training/testing.js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const python = await findTorchPython(process.env).catch((error: Error) => error.message);
const absent = typeof python === "string";
if (absent) console.warn(`adapters on the PyTorch server are not tested: ${python}`);

const folder = mkdtempSync(join(tmpdir(), "pawl-torch-lora-"));
const model = join(folder, "model");
const run = join(folder, "run");
let server: TorchServer;
afterAll(async () => {
  await server?.stop();
  rmSync(folder, { recursive: true, force: true });
});
const fail = (message: string): never => {
  throw new Error(message);
};
const ids = [3, 1, 4, 1, 5, 9, 2, 6];
const here = { address: "embedded", loraRank: 0, copy: false, threads: 1 } as const;

describe.skipIf(absent)("adapters", () => {
  beforeAll(async () => {
    if (typeof python === "string") return;
    await writeTestModel(model);
    const checkpoints = join(folder, "checkpoints");
    const options = { model, checkpoints, host: "127.0.0.1", port: 0, nproc: 1, threads: 1 };
    const environment = { ...process.env, PAWL_API_KEY: "" };
    server = await startTorchServer(python, options, environment, () => undefined);
    const config = tinyConfig({
      engine: { address: server.url, loraRank: 4, copy: true },
      evaluation: { every: 0 },
      updates: 2,
      optimizer: { learningRate: 0.01, warmup: 0 },
      objective: { entropy: 0, kl: 0.01 },
    });
    await trainRun({ ...config, updates: 1 }, { folder: run });
    await trainRun(config, { folder: run, resume: true });
  });

  it("give a reproducible run, resumed or not", async () => {
    const replayed = [];
    for await (const update of replayRun(openRun(run, fail), { losses: true, tolerance: 1e-3 }))
      replayed.push(update);
    expect(replayed.flatMap(({ divergences }) => divergences)).toEqual([]);
    expect(replayed.map(({ learnt }) => learnt)).toEqual([true, true]);
    expect(replayed[1]!.compared).toEqual(expect.arrayContaining(["policy.kl", "gradNorm"]));
    const kl = openRun(run, fail).metrics()[2]!["policy.kl"]!;
    expect(kl).toBeGreaterThan(1e-4);
  });

  it("are applied once: with an adapter, without, in this process, and exported", async () => {
    const saved = findSavedModel(run);
    expect(readdirSync(saved.weights)).toEqual(
      expect.arrayContaining(["adapter_config.json", "adapter_model.safetensors"]),
    );
    const scored: Float32Array[] = [];
    const start = { folder: saved.weights, tokenizer: saved.tokenizer };
    const withAdapter = engineFor(saved.config?.engine);
    expect(withAdapter.loraRank).toBeGreaterThan(0);
    for (const settings of [
      withAdapter,
      { ...withAdapter, loraRank: 0 },
      engineFor(saved.config?.engine, here),
    ]) {
      const { engine } = await openModel({ start, engine: settings });
      scored.push(await scores(engine, ids));
      await engine.dispose();
    }
    for (const [name, engine] of Object.entries({ here: {}, there: { address: server.url } })) {
      const out = join(folder, `exported-${name}`);
      await exportModel(saved, out, engine);
      expect(readdirSync(out).sort()).toEqual([
        "config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
      ]);
      const plain = await openSavedModel({ weights: out, tokenizer: out }, here);
      scored.push(await scores(plain.engine, ids));
      await plain.engine.dispose();
    }
    for (const other of scored.slice(1)) close(other, scored[0]!, 1e-4);
    const first = await openSavedModel(findSavedModel(join(run, "reference")), here);
    const apart = (await scores(first.engine, ids)).map((x, i) => Math.abs(x - scored[0]![i]!));
    expect(Math.max(...apart)).toBeGreaterThan(1e-2);
    await first.engine.dispose();
    expect(readdirSync(join(folder, "checkpoints", "exports"))).toEqual([]);
  });

  it.runIf(isWhole)("reach a sampler without adapter support merged into the weights", async () => {
    const standIn = await startStandIn({ kind: "vllm", model: testModel });
    const learner: Engine = await connectRemoteEngine({
      url: server.url,
      loraRank: 4,
      environment: {},
    });
    const engine = await withSampler(learner, { url: standIn.url, folder });
    const before = await scores(engine, ids);
    await learn(engine, toy, 10);
    const [samples] = await engine.sample([{ prompt: [3, 4], maxTokens: 12, seed: 1 }]);
    const { tokens, logprobs } = samples![0]!;
    close((await scores(engine, [3, 4, ...tokens])).subarray(2), logprobs, 1e-4);
    const moved = (await scores(engine, ids)).map((x, i) => Math.abs(x - before[i]!));
    expect(Math.max(...moved)).toBeGreaterThan(0.05);
    await engine.dispose();
    await standIn.close();
  });

  it.runIf(isWhole)("reach a second server that samples, after every update", async () => {
    if (typeof python === "string") return;
    const options = { checkpoints: join(folder, "checkpoints"), host: "127.0.0.1", port: 0 };
    const environment = { ...process.env, PAWL_API_KEY: "" };
    const silent = () => undefined;
    const more = { nproc: 1, threads: 1 };
    const sampler = await startTorchServer(python, { ...options, ...more }, environment, silent);
    try {
      const sampled = join(folder, "sampled");
      const engine = { address: server.url, loraRank: 4, sampler: sampler.url };
      const optimizer = { learningRate: 0.01, warmup: 0 };
      const config = { engine, optimizer, evaluation: { every: 0 }, updates: 2 };
      await trainRun(tinyConfig({ ...config, temperature: 0.7 }), { folder: sampled });
      for (const line of openRun(sampled, fail).metrics().slice(1)) {
        expect(line["mismatch.max"]).toBeLessThan(1e-4);
        expect(line["policy.importance"]).toBeCloseTo(1, 4);
      }
      const left = readdirSync(join(options.checkpoints, "uploads"));
      expect(left.filter((name) => name.includes("-"))).toEqual([]);
    } finally {
      await sampler.stop();
    }
  });
});

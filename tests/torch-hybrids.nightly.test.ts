/**
 * Hybrids end to end, tiny and with random weights: served through transformers' own forward pass, trained with
 * adapters by GRPO, killed together with their server, resumed on another one, and replayed.
 *
 * Runs if there is a Python with PyTorch and a transformers that knows them (PAWL_PYTHON, otherwise python3); `.ci/nightly hybrids` installs one.
 */
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openEnvironment } from "@pawl/core/envs/open.js";
import { openRun } from "@pawl/core/runs/run-folder.js";
import { promptStyle } from "@pawl/core/text/prompt.js";
import { buildTokenizer } from "@pawl/core/text/tokenizer-builder.js";
import { runCli } from "@pawl/pawl/cli/testing.js";
import { startTorchServer, type TorchServer } from "@pawl/pawl/cli/torch-server.js";
import { tinyConfig } from "@pawl/training/testing.js";
import { worldTexts } from "@pawl/training/world-text.js";
import { afterAll, describe, expect, it } from "vitest";
import { differences, pawl } from "../bench/shared/killed-runs.js";

const python = process.env.PAWL_PYTHON ?? "python3";
/** Writes a tiny model of a kind, as the server's own tests do; fails if transformers does not know it. */
const WRITE = `import json, sys
from pathlib import Path
from pawl_server.test_recurrent import HYBRIDS
from pawl_server.test_self_check import write
kind, changes = HYBRIDS[sys.argv[1]]
sizes = {"vocab_size": int(sys.argv[3]), "max_position_embeddings": 256}
sys.exit(0 if write(Path(sys.argv[2]), kind, {**changes, **sizes}) else 3)`;
const write = (kind: string, folder: string, vocabulary: number) =>
  spawnSync(python, ["-c", WRITE, kind, folder, String(vocabulary)], {
    cwd: "servers/torch",
    encoding: "utf8",
    env: { ...process.env, HF_HUB_OFFLINE: "1", OMP_NUM_THREADS: "1" },
  });

const parent = mkdtempSync(join(tmpdir(), "pawl-hybrids-"));
afterAll(() => rmSync(parent, { recursive: true, force: true }));
const probe = write("lfm2", join(parent, "probe"), 40);
const absent = probe.status !== 0;
if (absent)
  console.warn(
    `hybrids are not tested: ${probe.stderr.trim().split("\n").at(-1) || "no such model in transformers"}`,
  );

describe.skipIf(absent || process.platform === "win32").each(["qwen3.5", "lfm2"])("%s", (kind) => {
  const folder = join(parent, kind);
  const model = join(folder, "model");
  const servers: TorchServer[] = [];
  afterAll(() => Promise.all(servers.map((one) => one.stop())));
  const serve = async (): Promise<TorchServer> => {
    const checkpoints = join(folder, "checkpoints");
    const server = await startTorchServer(
      { command: python, torch: "" },
      { checkpoints, host: "127.0.0.1", port: 0, nproc: 1, threads: 1 },
      { ...process.env, PAWL_API_KEY: "" },
      () => undefined,
    );
    servers.push(server);
    return server;
  };

  it("learns with adapters, and killed with its server reaches the same numbers", async () => {
    mkdirSync(model, { recursive: true });
    const settings = tinyConfig({
      model: { start: model },
      engine: { loraRank: 4, copy: true },
      warmStart: { episodes: 0 },
      ...{ updates: 2, checkpointEvery: 1, evaluation: { every: 0 } },
      optimizer: { learningRate: 0.01, warmup: 0 },
      objective: { entropy: 0, kl: 0.01 },
    });
    const environment = openEnvironment({ ...settings.env, name: "household" });
    const words = promptStyle(environment.prompt, settings.prompt);
    const tokenizer = buildTokenizer(await worldTexts(environment, words, 30));
    expect(write(kind, model, tokenizer.vocabularySize)).toMatchObject({ status: 0 });
    await tokenizer.save(model);
    const config = join(folder, "config.json");
    writeFileSync(config, JSON.stringify({ ...settings, warmStart: { episodes: 0 } }));

    const first = await serve();
    const [whole, killed] = [join(folder, "whole"), join(folder, "killed")];
    const start = (out: string) => [
      "train",
      "--config",
      config,
      "--engine",
      first.url,
      "--out",
      out,
    ];
    const uninterrupted = await pawl(start(whole));
    expect(uninterrupted).toMatchObject({ code: 0 });
    const lines = uninterrupted.stderr.split("\n");
    const afterLines = lines.findIndex((line) => line.includes("update 1/2")) + 1;
    expect(afterLines, uninterrupted.stderr).toBeGreaterThan(0);
    expect(await pawl(start(killed), { afterLines, ms: 0 })).toMatchObject({ code: null });
    first.process.kill("SIGKILL");
    await first.ended;
    const second = await serve();
    const resumed = await pawl(["train", "--resume", killed, "--engine", second.url]);
    expect(resumed, resumed.stderr).toMatchObject({ code: 0 });
    // An adapter names its weights' place on the server; the manifest, which server.
    const places = /(^manifest|adapter_config)\.json$/;
    expect(differences(whole, killed).filter((name) => !places.test(name))).toEqual([]);
    const metrics = openRun(killed, expect.unreachable).metrics();
    expect(metrics.at(-1)).toMatchObject({ update: 1 });
    expect(metrics.at(-1)!["mismatch.max"]).toBeLessThan(1e-4);
    expect(metrics.at(-1)!["policy.kl"]).toBeGreaterThan(0);

    const { code, stdout, stderr } = await runCli(["replay", killed, "--losses"]);
    expect(code, stdout + stderr).toBe(0);
    expect(stdout).toMatch(/ 0 diverged/);
  }, 600_000);
});

/**
 * RWML on every engine: on a server, with a sampler, and what is refused or reported before it
 * starts.
 */
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isWhole } from "@pawl/core/dose-testing.js";
import { openRun } from "@pawl/core/runs/run-folder.js";
import { testModel } from "@pawl/engine-remote/remote/model-testing.js";
import { startTestServer, type TestServer } from "@pawl/engine-remote/remote/server-testing.js";
import { startStandIn } from "@pawl/engine-remote/sampler/server-testing.js";
import { runCli } from "@pawl/pawl/cli/testing.js";
import { trainRun } from "@pawl/training/run.js";
import { tinyConfig } from "@pawl/training/testing.js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const parent = mkdtempSync(join(tmpdir(), "pawl-rwml-engines-"));
const warm = join(parent, "warm");
const fail = (message: string): never => {
  throw new Error(message);
};
const forgetting = (folder: string) =>
  JSON.parse(readFileSync(join(folder, "forgetting.json"), "utf8"));
const metrics = (folder: string) => openRun(folder, fail).metrics();

/** The command line of a run that takes seconds. */
const rwml = (out: string, ...more: readonly string[]) =>
  runCli([
    ...["rwml", "--model.start", warm, "--out", out, "--reward", "rouge", "--updates", "2"],
    ...["--collect.episodes", "8", "--triplets", "3", "--group-size", "4", "--minibatch", "8"],
    ...["--prediction-tokens", "12", "--filter.share", "0.3", "--filter.epochs", "1"],
    ...["--held-out.share", "0.3", "--held-out.triplets", "4", "--evaluation.every", "0", ...more],
  ]);

let server: TestServer;
beforeAll(async () => {
  const sft = { epochs: 8, batch: 8, observationWeight: 1, optimizer: { learningRate: 3e-3 } };
  const warmStart = { episodes: 32, sft };
  await trainRun(tinyConfig({ updates: 0, warmStart, evaluation: { every: 0 } }), { folder: warm });
  server = await startTestServer({
    model: testModel,
    folder: join(parent, "server"),
    extensions: true,
  });
});
afterAll(async () => {
  await server?.close();
  rmSync(parent, { recursive: true, force: true });
});

describe("pawl rwml on an engine server", () => {
  const here = join(parent, "here");
  const there = join(parent, "there");

  it("computes there, gives the same numbers as here, and says what it cannot measure", async () => {
    expect((await rwml(here)).code).toBe(0);
    const { code, stderr, stdout } = await rwml(there, "--engine", server.url);
    expect([code, stderr]).toEqual([
      0,
      expect.stringContaining(
        "weights.moved will not be measured: the weights stay on the engine server; engine.copy brings them here",
      ),
    ]);
    expect(stdout).toContain("heldOut.loss.actions.change");
    expect(server.counts.get("optim_step")).toBeGreaterThan(0);
    for (const [i, line] of metrics(here).entries())
      for (const [name, value] of Object.entries(line))
        if (!/^(seconds|memory)\./.test(name))
          expect(metrics(there)[i]![name], name).toBeCloseTo(value, 4);
    expect(forgetting(here).weights.all).toBeGreaterThan(0);
    expect(forgetting(there).weights).toEqual({
      unmeasured: expect.stringContaining("engine.copy"),
    });
    expect(forgetting(there).loss.states.after).toBeCloseTo(forgetting(here).loss.states.after, 4);
    expect(existsSync(join(there, "checkpoints", "000002", "model.safetensors"))).toBe(false);
  });

  it("resumes there, and another RWML run can start from its result there", async () => {
    const { code } = await runCli(["rwml", "--resume", there, "--updates", "3"]);
    expect(code).toBe(0);
    expect(metrics(there).map(({ update }) => update)).toEqual([-1, 0, 1, 2]);
    const next = join(parent, "next");
    // Its engine is that of the run it starts from.
    const args = ["rwml", "--model.start", there, "--out", next, "--reward", "rouge"];
    const small = ["--updates", "1", "--collect.episodes", "8", "--triplets", "3"];
    const done = await runCli([
      ...[...args, ...small, "--prediction-tokens", "12", "--filter.share", "0"],
      ...["--held-out.share", "0.3", "--evaluation.every", "0", "--engine.copy"],
    ]);
    expect([done.code, done.stderr]).toEqual([0, expect.not.stringContaining("will not be")]);
    expect(openRun(next, fail).manifest.config).toMatchObject({ engine: { address: server.url } });
    expect(forgetting(next).weights.all).toBeGreaterThan(0);
  });
});

// Side by side, because a server that does not answer is waited for.
it.concurrent("an engine server that does not answer, or lacks what is needed, is refused before anything is learnt", async () => {
  const nowhere = join(parent, "nowhere");
  const gone = await rwml(nowhere, "--engine", "http://127.0.0.1:1");
  expect([gone.code, gone.stderr]).toEqual([1, expect.stringContaining("http://127.0.0.1:1")]);
  expect(metrics(nowhere)).toEqual([]);
  const copied = await rwml(join(parent, "copied"), "--engine.copy");
  expect([copied.code, copied.stderr]).toEqual([
    expect.any(Number),
    expect.stringMatching(/engine\.copy: .*engine server/),
  ]);
  expect(copied.code).not.toBe(0);
  const scratch = await runCli(["rwml", "--model.start", "tiny"]);
  expect(scratch.stderr).toContain("tiny holds no model");
});

it.runIf(isWhole)("predicts with a separate sampler, if one is named", async () => {
  const sampler = await startStandIn({
    kind: "vllm",
    model: { model: { folder: join(warm, "reference") }, threads: 1 },
  });
  const out = join(parent, "sampled");
  try {
    const { code, stderr } = await rwml(out, "--engine.sampler", sampler.url);
    expect([code, stderr]).toEqual([0, expect.stringContaining("update 2/2")]);
  } finally {
    await sampler.close();
  }
  expect(openRun(out, fail).manifest.config).toMatchObject({ engine: { sampler: sampler.url } });
  const learnt = metrics(out).filter((line) => line["rwml.skipped"] === 0);
  // Only a separate sampler's tokens are weighted.
  for (const line of learnt) expect(line).toHaveProperty(["policy.importance"]);
});

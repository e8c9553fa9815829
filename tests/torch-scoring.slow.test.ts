/**
 * The PyTorch server's reference, which scores while the policy acts: the same numbers as
 * afterwards, resumed or not, with and without adapters.
 *
 * Runs if there is a Python with PyTorch (PAWL_PYTHON, otherwise python3); if not, it says why.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { some } from "@pawl/core/dose-testing.js";
import { toy } from "@pawl/core/engine/conformance-tools-testing.js";
import type { Sample } from "@pawl/core/engine/engine.js";
import type { MetricsLine } from "@pawl/core/runs/metrics-file.js";
import { openRun } from "@pawl/core/runs/run-folder.js";
import { writeTestModel } from "@pawl/engine-remote/remote/model-testing.js";
import { connectRemoteEngine } from "@pawl/engine-remote/remote/remote-engine.js";
import {
  findTorchPython,
  startTorchServer,
  type TorchServer,
} from "@pawl/pawl/cli/torch-server.js";
import { isComparable, replayRun } from "@pawl/training/replay.js";
import { trainRun } from "@pawl/training/run.js";
import { tinyConfig } from "@pawl/training/testing.js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const python = await findTorchPython(process.env).catch((error: Error) => error.message);
const absent = typeof python === "string";
if (absent) console.warn(`scoring on the PyTorch server is not tested: ${python}`);

const folder = mkdtempSync(join(tmpdir(), "pawl-torch-scoring-"));
let server: TorchServer;
afterAll(async () => {
  await server?.stop();
  rmSync(folder, { recursive: true, force: true });
});
const fail = (message: string): never => {
  throw new Error(message);
};
const close = (value: number): unknown => expect.closeTo(value, 5);
const linesOf = (run: string): readonly MetricsLine[] => openRun(run, fail).metrics().slice(1);
const numbersOf = (run: string): readonly MetricsLine[] =>
  linesOf(run).map((line) =>
    Object.fromEntries(Object.entries(line).filter(([name]) => isComparable(name))),
  );

describe.skipIf(absent)("a reference on the PyTorch server", () => {
  beforeAll(async () => {
    if (typeof python === "string") return;
    const model = join(folder, "model");
    await writeTestModel(model);
    const place = { checkpoints: join(folder, "checkpoints"), host: "127.0.0.1", port: 0 };
    const options = { model, ...place, nproc: 1, threads: 1 };
    const environment = { ...process.env, PAWL_API_KEY: "" };
    server = await startTorchServer(python, options, environment, () => undefined);
  });

  it("answers while others sample, with the numbers of one request after another", async () => {
    const engine = await connectRemoteEngine({ url: server.url });
    expect(engine.capabilities.scoresBesideSampling).toBe(true);
    await engine.snapshotReference();
    const score = () => engine.forward(toy, { weights: "reference" });
    const sample = (seed: number) => engine.sample([{ prompt: [1, 2], maxTokens: 6, seed }]);
    const alone = await score();
    const drawn = [await sample(1), await sample(2)];
    const [first, one, second, two] = await Promise.all([score(), sample(1), score(), sample(2)]);
    expect([first, second]).toEqual([alone, alone]);
    // Samples may share a forward pass, and sums are rounded differently there.
    const rounded = ({ logprobs, sampledLogprobs, ...sampled }: Sample) => ({
      ...sampled,
      logprobs: logprobs.map(close),
      sampledLogprobs: sampledLogprobs?.map(close),
    });
    expect([one, two].flat(2)).toEqual(drawn.flat(2).map(rounded));
    await engine.dispose();
  });

  it.each(some([0, 4]))("scores while the policy acts, adapters of rank %i", async (loraRank) => {
    const config = (changes: object) =>
      tinyConfig({
        engine: { address: server.url, loraRank, copy: true },
        evaluation: { every: 0 },
        warmStart: { episodes: 0 },
        ...{ updates: 2, groups: 1, groupSize: 4, stepLimit: 5 },
        optimizer: { learningRate: 0.01, warmup: 0 },
        objective: { entropy: 0, kl: 0.01 },
        ...changes,
      });
    const runs = ["whole", "resumed", "after"].map((name) => join(folder, `${name}-${loraRank}`));
    const [whole, resumed, after] = runs as [string, string, string];
    await trainRun(config({}), { folder: whole });
    await trainRun(config({ updates: 1 }), { folder: resumed });
    await trainRun(config({}), { folder: resumed, resume: true });
    expect(numbersOf(resumed)).toEqual(numbersOf(whole));
    for (const line of linesOf(whole)) {
      expect(line["pace.scored"]).toBeGreaterThanOrEqual(0);
      expect(line["pace.scored"]).toBeLessThanOrEqual(1);
    }
    expect(linesOf(whole)[1]!["policy.kl"]).toBeGreaterThan(1e-4);

    const replayed = [];
    for await (const one of replayRun(openRun(whole, fail), { losses: true, tolerance: 1e-3 }))
      replayed.push(one);
    expect(replayed.flatMap(({ divergences }) => divergences)).toEqual([]);

    // The first update with the same weights: what differs is how sums are rounded.
    await trainRun(config({ scoreWhileActing: false, updates: 1 }), { folder: after });
    const [first] = numbersOf(after);
    expect(Object.keys(first!)).toEqual(Object.keys(numbersOf(whole)[0]!));
    for (const [name, value] of Object.entries(first!))
      expect(numbersOf(whole)[0]![name], name).toBeCloseTo(value, 5);
    expect(linesOf(after)[0]).not.toHaveProperty(["pace.scored"]);
    await expect(
      trainRun(config({ scoreWhileActing: true }), { folder: after, resume: true }),
    ).rejects.toThrow(/score-while-acting cannot change on a resumed run/);
  });
});

it("is refused where the engine cannot score while it samples", async () => {
  const config = tinyConfig({ scoreWhileActing: true });
  await expect(trainRun(config, { folder: join(folder, "embedded") })).rejects.toThrow(
    /cannot score while it samples: leave scoreWhileActing out/,
  );
});

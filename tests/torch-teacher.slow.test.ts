/** Teachers of on-policy distillation on the PyTorch server: adapters, and the model that it serves. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openRun } from "@pawl/core/runs/run-folder.js";
import {
  findTorchPython,
  startTorchServer,
  type TorchServer,
} from "@pawl/pawl/cli/torch-server.js";
import { exportModel } from "@pawl/training/export.js";
import { isComparable, replayRun } from "@pawl/training/replay.js";
import { trainRun } from "@pawl/training/run.js";
import { findSavedModel } from "@pawl/training/saved-model.js";
import { tinyConfig } from "@pawl/training/testing.js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const python = await findTorchPython(process.env).catch((error: Error) => error.message);
const absent = typeof python === "string";
if (absent) console.warn(`teachers on the PyTorch server are not tested: ${python}`);

const folder = mkdtempSync(join(tmpdir(), "pawl-torch-teacher-"));
const here = join(folder, "here");
const there = join(folder, "there");
let server: TorchServer;
afterAll(async () => {
  await server?.stop();
  rmSync(folder, { recursive: true, force: true });
});
const fail = (message: string): never => {
  throw new Error(message);
};

const silent = () => undefined;

/** Everything that does not depend on time. */
const linesOf = (run: string) =>
  openRun(run, fail)
    .metrics()
    .map((line) => Object.fromEntries(Object.entries(line).filter(([name]) => isComparable(name))));
const distancesOf = (run: string) =>
  linesOf(run).flatMap((line) => (line["distillation.kl"] as number | undefined) ?? []);

/** A run of adapters that imitate, to teach. */
const teaching = (engine: object) =>
  tinyConfig({
    ...{ updates: 0, evaluation: { every: 0 }, engine: { loraRank: 4, threads: 1, ...engine } },
    warmStart: { episodes: 8, sft: { epochs: 4, batch: 8, optimizer: { learningRate: 0.02 } } },
  });

const student = (distillation: object, changes: object = {}) =>
  tinyConfig({
    ...{ updates: 2, groups: 4, groupSize: 4, minibatch: 8, evaluation: { every: 0 } },
    ...{ paw: { loss: "off" }, objective: { entropy: 0, kl: 0 } },
    optimizer: { learningRate: 2e-3, warmup: 0 },
    distillation,
    ...changes,
  });

/** Trains a student of this teacher, and returns how far it was from it in each update. */
async function taught(name: string, ...settings: Parameters<typeof student>) {
  await trainRun(student(...settings), { folder: join(folder, name) });
  return distancesOf(join(folder, name));
}

describe.skipIf(absent)("a teacher on the PyTorch server", () => {
  let embedded: readonly number[];
  beforeAll(async () => {
    if (typeof python === "string") return;
    await trainRun(teaching({}), { folder: here });
    embedded = await taught("embedded", { teacher: here });
    const model = join(folder, "model");
    await exportModel(findSavedModel(here), model);
    const options = { model, host: "127.0.0.1", port: 0, nproc: 1, threads: 1 };
    const checkpoints = join(folder, "checkpoints");
    const environment = { ...process.env, PAWL_API_KEY: "" };
    server = await startTorchServer(python, { ...options, checkpoints }, environment, silent);
  });
  const expectEmbedded = (distances: readonly number[]) => {
    expect(distances).toHaveLength(embedded.length);
    for (const [n, distance] of distances.entries()) expect(distance).toBeCloseTo(embedded[n]!, 5);
  };

  it("says the same of an embedded run's adapters, and as the model that is served", async () => {
    expectEmbedded(await taught("adapters", { teacher: here, engine: server.url }));
    expectEmbedded(await taught("served", { teacher: "served", engine: server.url }));
  });

  it("is a run whose adapters were trained there, and is refused by name elsewhere", async () => {
    await trainRun(teaching({ address: server.url }), { folder: there });
    const distances = await taught("of-there", { teacher: there, engine: server.url });
    expect(distances.every((distance) => distance > 0.05)).toBe(true);
    await expect(taught("elsewhere", { teacher: there })).rejects.toThrow(
      /weights are on the engine server .*--distillation.engine http/,
    );
  });

  it("stands beside a policy with adapters there; the run is resumed and replayed", async () => {
    const engine = { address: server.url, loraRank: 4 };
    const config = student({ teacher: "served" }, { engine });
    const [whole, resumed] = [join(folder, "whole"), join(folder, "resumed")];
    await trainRun(config, { folder: whole });
    await trainRun({ ...config, updates: 1 }, { folder: resumed });
    await trainRun(config, { folder: resumed, resume: true });
    expect(linesOf(resumed)).toEqual(linesOf(whole));
    for await (const { divergences, compared } of replayRun(openRun(resumed, fail), {
      ...{ losses: true, tolerance: 1e-3 },
    })) {
      expect(divergences).toEqual([]);
      expect(compared).toEqual(expect.arrayContaining(["distillation.kl", "policy.loss"]));
    }
  });
});

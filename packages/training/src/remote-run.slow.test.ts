/**
 * A run on an engine server: the same numbers as here, and what happens if that server is killed.
 */
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { some } from "@pawl/core/dose-testing.js";
import type { MetricsLine } from "@pawl/core/runs/metrics-file.js";
import { openRun } from "@pawl/core/runs/run-folder.js";
import { testModel } from "@pawl/engine-remote/remote/model-testing.js";
import {
  type ServerProcess,
  startServerProcess,
} from "@pawl/engine-remote/remote/process-testing.js";
import { startTestServer, type TestServer } from "@pawl/engine-remote/remote/server-testing.js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openSavedModel } from "./open-model.js";
import { trainRun } from "./run.js";
import { findSavedModel } from "./saved-model.js";
import { tinyConfig } from "./testing.js";

const parent = mkdtempSync(join(tmpdir(), "pawl-remote-run-"));
afterAll(() => rmSync(parent, { recursive: true, force: true }));

const config = (engine: object, changes: object = {}) =>
  tinyConfig({ engine, evaluation: { every: 0 }, ...changes });

/** With the gradients of the policy and of the world model. */
const measured = { gradients: { every: 10 } };

const fail = (message: string): never => {
  throw new Error(message);
};

/** What a run recorded, except what depends on the clock and the machine. */
function recorded(folder: string) {
  const run = openRun(folder, fail);
  const timeless = (line: MetricsLine) =>
    Object.fromEntries(Object.entries(line).filter(([name]) => !/^(seconds|memory)\./.test(name)));
  return { episodes: [...run.episodes()], metrics: run.metrics().map(timeless) };
}

let here: string;
let server: TestServer | undefined;
beforeAll(async () => {
  here = join(parent, "here");
  await trainRun(config({ threads: 1 }, measured), { folder: here });
  const folder = join(parent, "server");
  server = await startTestServer({ model: testModel, folder, extensions: true });
});
afterAll(() => server?.close());

describe("a run on an engine server", () => {
  it("gives the same numbers as here", async () => {
    const there = join(parent, "there");
    await trainRun(config({ address: server!.url }, measured), { folder: there });
    const [a, b] = [recorded(here), recorded(there)];
    expect(b.episodes.map(({ steps }) => steps.map(({ action }) => action))).toEqual(
      a.episodes.map(({ steps }) => steps.map(({ action }) => action)),
    );
    for (const [i, line] of a.metrics.entries())
      for (const [name, value] of Object.entries(line))
        expect(b.metrics[i]![name], name).toBeCloseTo(value, 5);
    expect(b.metrics[1]!["mismatch.max"]).toBeLessThan(1e-4);
    // Weights stay on the server; the folder points to them.
    expect(readdirSync(join(there, "checkpoints", "000003")).sort()).toContain("remote.json");
    expect(existsSync(join(there, "checkpoints", "000003", "model.safetensors"))).toBe(false);
    expect(readFileSync(join(there, "manifest.json"), "utf8")).not.toMatch(/API_KEY/);
    await expect(openSavedModel(findSavedModel(there), { address: "embedded" })).rejects.toThrow(
      /weights are on the engine server/,
    );
    const { engine } = await openSavedModel(findSavedModel(there));
    expect(engine.capabilities.name).toContain(server!.url);
    await engine.dispose();
  });

  it("copies its checkpoints if told to, so that they can be used here", async () => {
    const copied = join(parent, "copied");
    await trainRun(config({ address: server!.url, copy: true }, { updates: 1 }), {
      folder: copied,
    });
    const { engine } = await openSavedModel(findSavedModel(copied), {
      address: "embedded",
      threads: 1,
    });
    const [result] = await engine.forward([{ ids: [1, 2, 3] }]);
    expect(result!.logprobs[1]).toBeLessThan(0);
    await engine.dispose();
  });

  it("on a plain server says that it takes two passes, and refuses what it cannot do", async () => {
    const start = join(here, "checkpoints", "000003");
    const plain = await startTestServer({
      model: { model: { folder: start }, threads: 1 },
      folder: join(parent, "plain-server"),
      extensions: false,
    });
    const said: string[] = [];
    const run = (name: string, changes: object, resume = false) =>
      trainRun(config({ address: plain.url }, { model: { start }, updates: 1, ...changes }), {
        folder: join(parent, name),
        resume,
        onProblem: (message) => said.push(message),
      });
    for (const weights of ["own", "shared"]) {
      const critic = { advantage: { name: "ppo" }, critic: { weights } };
      await expect(run(`refused-${weights}`, critic)).rejects.toThrow(/no value head/);
    }
    await expect(run("refused-2", { ...measured, paw: { entropy: "full" } })).rejects.toThrow(
      /no entropies: set paw.entropy.*cannot measure gradients: set gradients.every to 0/,
    );
    await expect(run("refused-3", { temperature: 0.7 })).rejects.toThrow(
      /log-probabilities at temperature 1 only: set temperature to 1/,
    );
    await run("plain", {});
    expect(said.at(-1)).toMatch(
      /does not support objectives: every update needs a second forward pass/,
    );
    await run("plain", { updates: 2 }, true);
    const { metrics } = recorded(join(parent, "plain"));
    expect(metrics.map((line) => line.update)).toEqual([-1, 0, 1]);
    expect(metrics[2]!["policy.kl"]).toBeGreaterThan(0);
    await plain.close();
  });
});

describe("a server killed in the middle", () => {
  for (const call of some(["save_weights", "forward_backward", "sample_batch"]))
    it(`of ${call}: the run says so, and resuming loses only the update`, async () => {
      const folder = join(parent, `killed-${call}`);
      const options = { model: testModel, folder: `${folder}-server`, extensions: true };
      let process: ServerProcess = await startServerProcess(options);
      const settings = config({ address: process.url });
      // The warm start and the first update are behind it.
      const running = trainRun(settings, {
        folder,
        onMetrics: (line) => {
          if (line.update === 0) armed();
        },
      });
      let armed = (): void => undefined;
      const killed = new Promise<void>((resolve) => {
        armed = () => {
          void process.called(call, call === "save_weights" ? 2 : 1).then(async () => {
            await process.kill();
            process = await startServerProcess({
              ...options,
              port: portOf(settings.engine.address),
            });
            resolve();
          });
        };
      });
      await expect(running).rejects.toThrow(/restarted.*resume from the last one/);
      await killed;
      expect(openRun(folder, fail).manifest.status).toBe("failed");
      const before = readdirSync(join(folder, "checkpoints")).filter((name) => !/tmp/.test(name));
      expect(before).toEqual(["000001"]);
      await trainRun(settings, { folder, resume: true });
      await process.kill();
      const [a, b] = [recorded(here), recorded(folder)];
      expect(b.metrics.map((line) => line.update)).toEqual([-1, 0, 1, 2]);
      for (const [i, line] of a.metrics.entries())
        for (const [name, value] of Object.entries(line))
          if (!name.startsWith("gradient."))
            expect(b.metrics[i]![name], name).toBeCloseTo(value, 5);
    });
});

const portOf = (url: string): number => Number(new URL(url).port);

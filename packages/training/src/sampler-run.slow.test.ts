/**
 * A whole small run with a separate sampler: a stand-in for the wire formats of vLLM and SGLang, or a
 * second engine server.
 */
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isWhole } from "@pawl/core/dose-testing.js";
import { openRun } from "@pawl/core/runs/run-folder.js";
import { startTestServer } from "@pawl/engine-remote/remote/server-testing.js";
import { type StandIn, startStandIn } from "@pawl/engine-remote/sampler/server-testing.js";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { engineOptions, openEngine } from "./engines.js";
import { openSavedModel } from "./open-model.js";
import { replayRun } from "./replay.js";
import { trainRun } from "./run.js";
import { findSavedModel } from "./saved-model.js";
import { tinyConfig } from "./testing.js";

const parent = mkdtempSync(join(tmpdir(), "pawl-sampler-run-"));
afterAll(() => rmSync(parent, { recursive: true, force: true }));
const here = join(parent, "here");
const config = (engine: object = {}, changes: object = {}) =>
  tinyConfig({ engine: { threads: 1, ...engine }, evaluation: { every: 0 }, ...changes });
/** With the gradients of the policy and of the world model. */
const measured = { gradients: { every: 10 } };
const fail = (message: string): never => {
  throw new Error(message);
};
const recorded = (folder: string) => {
  const run = openRun(folder, fail);
  return { episodes: [...run.episodes()], metrics: run.metrics() };
};

let server: StandIn | undefined;
const start = async (kind: "vllm" | "sglang") => {
  const model = { model: { folder: join(here, "reference") }, threads: 1 };
  server = await startStandIn({ kind, model });
  return server;
};
beforeAll(() => trainRun(config({}, measured), { folder: here }));
afterEach(async () => {
  await server?.close();
  server = undefined;
});

const overlap = { overlap: 1, updates: 3, evaluation: { every: 1, tasks: 1 } };
let ahead: Promise<string> | undefined;
/** The same run with the engine's own actor, made once. */
const aheadHere = (): Promise<string> => {
  const folder = join(parent, "ahead-here");
  ahead ??= trainRun(config({}, overlap), { folder }).then(() => folder);
  return ahead;
};

describe("a run with a separate sampler", () => {
  for (const [kind, updates] of [
    ["vllm", 3],
    ["sglang", 1],
  ] as const)
    it(`that is ${kind} with the same numbers is the same run as without one`, async () => {
      const folder = join(parent, kind);
      const { url } = await start(kind);
      await trainRun(config({ sampler: url }, { updates, ...measured }), { folder });
      const [a, b] = [recorded(here), recorded(folder)];
      const actions = ({ episodes }: typeof a) =>
        episodes.map(({ steps }) => steps.map(({ action }) => action));
      expect(actions(b)).toHaveLength(6 * updates);
      expect(actions(b)).toEqual(actions(a).slice(0, 6 * updates));
      expect(b.metrics).toHaveLength(1 + updates);
      for (const [i, line] of a.metrics.slice(0, 1 + updates).entries())
        for (const [name, value] of Object.entries(line))
          if (!/^(seconds|memory)\./.test(name))
            expect(b.metrics[i]![name], name).toBeCloseTo(value, 5);
      for (const line of b.metrics.slice(1)) {
        expect(line["mismatch.max"]).toBeLessThan(1e-5);
        expect(line["policy.importance"]).toBeCloseTo(1, 5);
        expect(line["policy.truncated"]).toBe(0);
      }
      // Without a sampler there is no correction, and no trace of it in the record.
      expect(a.metrics[1]).not.toHaveProperty("policy.importance");
    });

  it.runIf(isWhole)(
    "acts while the engine learns, with the same episodes as the engine's own actor",
    async () => {
      const folder = join(parent, "ahead");
      const own = await aheadHere();
      const { url } = await start("vllm");
      const problems: string[] = [];
      const onProblem = (problem: string): void => void problems.push(problem);
      await trainRun(config({ sampler: url }, overlap), { folder, onProblem });
      const drawn = (run: string) =>
        recorded(run).episodes.map(({ weights, steps }) => [
          weights,
          steps.map(({ action }) => action),
        ]);
      expect(drawn(folder)).toEqual(drawn(own));
      // Only the embedded engine takes turns.
      expect(problems.join("\n")).not.toMatch(/in turns/);
    },
  );

  it.runIf(isWhole)("works with an engine server, whose weights are copied for it", async () => {
    const folder = join(parent, "both");
    const { url } = await start("vllm");
    const model = { model: { folder: join(here, "reference") }, threads: 1 };
    const learner = await startTestServer({ model, folder: `${folder}-server`, extensions: true });
    await trainRun(config({ address: learner.url, copy: true, sampler: url }, { updates: 2 }), {
      folder,
    });
    for (const line of recorded(folder).metrics.slice(1))
      expect(line["mismatch.max"]).toBeLessThan(1e-5);
    await learner.close();
  });

  it("cannot be vLLM if the weights stay on an engine server", async () => {
    const { url } = await start("vllm");
    const model = { model: { folder: join(here, "reference") }, threads: 1 };
    const learner = await startTestServer({
      model,
      folder: join(parent, "kept"),
      extensions: true,
    });
    const engine = engineOptions.parse({ address: learner.url, sampler: url });
    await expect(openEngine(engine, { served: true })).rejects.toThrow(
      /vLLM .* cannot read the weights, which stay on the engine server: set engine.copy/,
    );
    await learner.close();
  });

  it("that keeps old weights shows it, and its tokens are weighted and truncated", async () => {
    const folder = join(parent, "stale");
    const stale = await start("vllm");
    const optimizer = { learningRate: 0.02, warmup: 0 };
    await trainRun(config({ sampler: stale.url }, { optimizer, mismatchLimit: 100 }), {
      folder,
      onMetrics: ({ update }) => {
        stale.stale = update === 0 || stale.stale;
      },
    });
    const [first, ...later] = recorded(folder).metrics.slice(1);
    expect(first!["mismatch.max"]).toBeLessThan(1e-5);
    for (const line of later) {
      expect(line["mismatch.mean"]).toBeGreaterThan(0.1);
      expect(line["policy.truncated"]).toBeGreaterThan(0);
      expect(line["policy.truncated"]).toBeLessThan(1);
      expect(line["policy.importance"]).toBeLessThan(2);
      expect(line["policy.importance"]).not.toBeCloseTo(1, 2);
    }
  });

  it.runIf(isWhole)(
    "that keeps old weights stops the run before it learns, if no limit is set",
    async () => {
      const folder = join(parent, "stopped");
      const stale = await start("vllm");
      const optimizer = { learningRate: 0.02, warmup: 0 };
      const running = trainRun(config({ sampler: stale.url }, { optimizer }), {
        folder,
        onMetrics: ({ update }) => {
          stale.stale = update === 0 || stale.stale;
        },
      });
      await expect(running).rejects.toThrow(
        /mismatch.mean is [\d.]+ nats, above 0.1: .*vLLM .*The sampler has other weights.*--mismatch-limit/,
      );
      expect(openRun(folder, fail).manifest.status).toBe("failed");
      expect(recorded(folder).metrics.map(({ update }) => update)).toEqual([-1, 0]);
    },
  );

  it("can be replayed, and its model read, without the sampler", async () => {
    const folder = join(parent, "replayed");
    const changes = { updates: 1, ...measured };
    await trainRun(config({ sampler: (await start("vllm")).url }, changes), { folder });
    await server!.close();
    server = undefined;
    const updates = [];
    for await (const update of replayRun(openRun(folder, fail), { losses: true, tolerance: 1e-3 }))
      updates.push(update);
    expect(updates.flatMap((update) => update.divergences)).toEqual([]);
    expect(updates.map((update) => update.learnt)).toEqual([true]);
    expect(updates[0]!.compared).toEqual(expect.arrayContaining(["policy.loss", "mismatch.mean"]));
    for await (const update of replayRun(openRun(folder, fail), { losses: false, tolerance: 1e-3 }))
      expect([update.divergences, update.left]).toEqual([
        [],
        expect.arrayContaining(["policy.loss", "policy.importance"]),
      ]);
    const { engine } = await openSavedModel(findSavedModel(folder));
    expect(engine.capabilities.otherSampler).toBeUndefined();
    await engine.dispose();
  });
});

describe("a second engine server as the sampler", () => {
  const model = { model: { folder: join(here, "reference") }, threads: 1 };
  /** A server that learns and one that samples, with one folder for checkpoints or two. */
  const pair = async (name: string, shared = true) => {
    const checkpoints = join(parent, name);
    const learner = await startTestServer({ model, folder: checkpoints, extensions: true });
    const folder = shared ? checkpoints : `${checkpoints}-other`;
    const sampler = await startTestServer({ model, folder, extensions: true });
    const close = () => Promise.all([learner.close(), sampler.close()]);
    return { learner, sampler, checkpoints, close };
  };
  const drawn = (run: string) =>
    recorded(run).episodes.map(({ weights, steps }) => [
      weights,
      steps.map(({ action }) => action),
    ]);

  it("acts while the first one learns, with the same episodes, and sends no weights", async () => {
    const own = await aheadHere();
    const { learner, sampler, checkpoints, close } = await pair("ahead-servers");
    const folder = join(parent, "server-ahead");
    const engine = { address: learner.url, sampler: sampler.url };
    await trainRun(config(engine, overlap), { folder });
    expect(drawn(folder)).toEqual(drawn(own));
    expect(recorded(folder).metrics[1]!["policy.drift"]).toBeLessThan(1e-4);
    expect(recorded(folder).metrics[2]!["policy.drift"]).toBeGreaterThan(1e-4);
    // One server learns and never samples, the other samples and never learns.
    expect([learner.counts.get("sample_batch"), sampler.counts.get("optim_step")]).toEqual([
      undefined,
      undefined,
    ]);
    // After the warm start, when RL starts from its checkpoint, and after each update, for its evaluation.
    expect(sampler.counts.get("load_weights")).toBe(5);
    expect(sampler.requests.filter(({ path }) => /\.safetensors/.test(path))).toEqual([]);
    // What is left are the upload that the run started from, and its own checkpoints.
    const left = readdirSync(checkpoints, { recursive: true, encoding: "utf8" });
    expect(left.filter((name) => /^uploads.[0-9a-f]{8}-.*safetensors/.test(name))).toEqual([]);
    expect(left.some((name) => name.endsWith("model.safetensors"))).toBe(true);
    await close();
  });

  it.runIf(isWhole)("gets weights over the network if they are copied", async () => {
    const { learner, sampler, checkpoints, close } = await pair("sent", false);
    const apart = { address: learner.url, sampler: sampler.url };
    await expect(openEngine(engineOptions.parse(apart), { served: true })).rejects.toThrow(
      /does not see the checkpoints .*same --checkpoints FOLDER, or set engine.copy/,
    );
    const folder = join(parent, "sent-run");
    await trainRun(config({ ...apart, copy: true }, { updates: 2 }), { folder });
    expect(drawn(folder)).toEqual(drawn(here).slice(0, 12));
    for (const line of recorded(folder).metrics.slice(1))
      expect(line["mismatch.max"]).toBeLessThan(1e-5);
    expect(readdirSync(join(`${checkpoints}-other`, "uploads"))).toEqual([]);
    await close();
  });

  it("is refused if it cannot be given weights, or a model of its own is named", async () => {
    const { learner, sampler, close } = await pair("refused");
    const settings = { address: learner.url, sampler: sampler.url };
    await expect(
      openEngine(engineOptions.parse({ ...settings, samplerModel: "x" }), { served: true }),
    ).rejects.toThrow(/engine.samplerModel: the engine server at .* leave it out/);
    const plain = await startTestServer({
      model,
      folder: join(parent, "plain"),
      extensions: false,
    });
    await expect(
      openEngine(engineOptions.parse({ ...settings, sampler: plain.url }), { served: true }),
    ).rejects.toThrow(/cannot be given weights to sample with; expected one of pawl serve engine/);
    await Promise.all([close(), plain.close()]);
  });
});

describe("sampler settings that cannot work", () => {
  const model = { preset: "tiny", vocabularySize: 40, maxContext: 64 } as const;
  const sampler = "http://127.0.0.1:9";
  const refused = (settings: object, reason: RegExp, more: object = {}) =>
    expect(openEngine(engineOptions.parse(settings), model, more)).rejects.toThrow(reason);

  it("are refused before anything is started", async () => {
    await refused({ samplerFolder: "/x" }, /there is no sampler; name one with --engine.sampler/);
    await refused({ sampler }, /choose another advantage than ppo/, { valueHead: true });
    await refused({ sampler, threads: 1 }, /no sampler answers at http:\/\/127.0.0.1:9/);
    expect(() => engineOptions.parse({ sampler: "http://me:secret@host" })).toThrow(
      /put the key into PAWL_SAMPLER_API_KEY/,
    );
    expect(() => engineOptions.parse({ sampler: "localhost:8000" })).toThrow();
  });
});

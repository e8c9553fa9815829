/**
 * A real server of Tinker's plain protocol, SkyRL's, as an engine; and our messages against the types of
 * Tinker's own client.
 *
 * Runs if PAWL_SKYRL is a Python that has skyrl[tinker,jax], tinker and uv; docs/remote-engines.md says how
 * to install them. On a CPU the server compiles for minutes.
 */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { clipped, crossEntropy, toy } from "../src/engine/conformance-tools-testing.js";
import { createEmbeddedEngine } from "../src/engine/embedded/embedded-engine.js";
import type { Engine } from "../src/engine/engine.js";
import { testModel, writeTestModel } from "../src/engine/remote/model-testing.js";
import { connectRemoteEngine } from "../src/engine/remote/remote-engine.js";
import { startTestServer } from "../src/engine/remote/server-testing.js";
import { openEnvironment } from "../src/envs/open.js";
import { openRun } from "../src/runs/run-folder.js";
import { promptStyle } from "../src/text/prompt.js";
import { buildTokenizer } from "../src/text/tokenizer-builder.js";
import { trainRun } from "../src/train/run.js";
import { tinyConfig } from "../src/train/testing.js";
import { worldTexts } from "../src/train/world-text.js";

const python = process.env.PAWL_SKYRL;
const absent =
  python === undefined || spawnSync(python, ["-c", "import skyrl.tinker.api, tinker"]).status !== 0;
if (absent) console.warn("SkyRL is not tested: PAWL_SKYRL names no Python that has it");
const MINUTES = 60_000;
const parent = mkdtempSync(join(tmpdir(), "pawl-skyrl-"));
afterAll(() => rmSync(parent, { recursive: true, force: true }));

/** Settings of a run in a small world, on this server and with this model. */
const configFor = (url: string, start: string) =>
  tinyConfig({
    model: { start },
    engine: { address: url, loraRank: 8 },
    warmStart: { episodes: 4, sft: { epochs: 1, batch: 4 } },
    ...{ updates: 1, groups: 1, groupSize: 2, stepLimit: 2, maxTokens: 4 },
    objective: { entropy: 0, kl: 0.01 },
    gradients: { every: 0 },
    evaluation: { every: 0 },
  });

/** A Llama model from scratch with the tokenizer of that world. */
async function writeModel(folder: string): Promise<void> {
  const { env, prompt } = tinyConfig();
  const environment = openEnvironment({ ...env, name: String(env.name) });
  const tokenizer = await buildTokenizer(
    await worldTexts(environment, promptStyle(environment.prompt, prompt)),
    { chat: false },
  );
  const shape = { hiddenSize: 64, layers: 2, mlpSize: 176, heads: 2, kvHeads: 2, headSize: 32 };
  const rest = { ropeTheta: 1e4, normEps: 1e-6, tiedEmbeddings: false, qkvBias: false };
  const vocabularySize = tokenizer.vocabularySize;
  const engine = await createEmbeddedEngine({
    model: { config: { vocabularySize, maxContext: 256, ...shape, ...rest } },
  });
  await engine.save(folder, { optimizer: false });
  await tokenizer.save(folder);
  await engine.dispose();
}

/** Starts SkyRL's server with the model, and waits until it answers. */
async function serve(model: string): Promise<{ url: string; child: ChildProcess }> {
  const probe = createServer();
  await new Promise<void>((resolve) => probe.listen(0, "127.0.0.1", resolve));
  const { port } = probe.address() as { port: number };
  await new Promise((resolve) => probe.close(resolve));
  const bin = dirname(python!);
  const child = spawn(
    join(bin, "uv"),
    [
      ...["run", "--no-project", "--active", "--", "python", "-m", "skyrl.tinker.api"],
      ...["--base-model", model, "--backend", "jax", "--port", String(port)],
      ...["--backend-config", JSON.stringify({ max_lora_adapters: 4, max_lora_rank: 8 })],
    ],
    {
      cwd: parent,
      env: { ...process.env, PATH: `${bin}:${process.env.PATH}`, VIRTUAL_ENV: dirname(bin) },
      stdio: "ignore",
      // Its engine is a process of its own: both are ended as a group.
      detached: true,
    },
  );
  const url = `http://127.0.0.1:${port}`;
  for (;;) {
    const answer = await fetch(`${url}/api/v1/healthz`).catch(() => undefined);
    if (answer?.ok === true) return { url, child };
    if (child.exitCode !== null) throw new Error(`SkyRL's server ended with ${child.exitCode}`);
    await sleep(500);
  }
}

it.skipIf(absent)(
  "what we send is what Tinker's own client could send",
  async () => {
    const start = join(parent, "types");
    await writeTestModel(start);
    const server = await startTestServer({ model: testModel, folder: parent, extensions: false });
    const engine = await connectRemoteEngine({ url: server.url, folder: start });
    await engine.snapshotReference();
    await engine.forwardBackward(toy, crossEntropy);
    await engine.optimStep({ learningRate: 1e-3, gradClipNorm: 1 });
    await engine.sample([{ prompt: [1, 2], maxTokens: 2, seed: 1, topK: 3, stop: [[4]] }]);
    await engine.save(join(parent, "saved"));
    await engine.load(join(parent, "saved"));
    await engine.dispose();
    await server.close();
    const input = server.requests.map((request) => JSON.stringify(request)).join("\n");
    const ran = spawnSync(python!, ["tests/tinker_types.py"], { input, encoding: "utf8" });
    expect(ran.stderr).toBe("");
    expect(JSON.parse(ran.stdout)).toEqual({
      ...{ asample: 1, create_model: 4, create_session: 1, load_weights: 2, optim_step: 1 },
      ...{ save_weights: 2, save_weights_for_sampler: 1, unload_model: 4 },
    });
  },
  5 * MINUTES,
);

describe.skipIf(absent)("SkyRL's server", () => {
  const folder = join(parent, "model");
  let server: Awaited<ReturnType<typeof serve>>;
  let skyrl: Engine;
  let embedded: Engine;
  const notices: string[] = [];
  const some = toy.slice(0, 4);
  beforeAll(async () => {
    const onNotice = (message: string) => notices.push(message);
    await writeModel(folder);
    server = await serve(folder);
    skyrl = await connectRemoteEngine({ url: server.url, folder, loraRank: 8, onNotice });
    embedded = await createEmbeddedEngine({ model: { folder } });
  }, 10 * MINUTES);
  afterAll(async () => {
    await skyrl?.dispose();
    await embedded?.dispose();
    if (server?.child.pid !== undefined) process.kill(-server.child.pid, "SIGKILL");
  });

  /** Largest difference of log-probabilities. */
  const apart = (a: readonly ArrayLike<number>[], b: readonly ArrayLike<number>[]): number =>
    Math.max(...a.flatMap((x, i) => Array.from(x, (value, j) => Math.abs(value - b[i]![j]!))));

  it("is distinguished from ours", () => {
    expect(notices.join()).toContain("every update needs a second forward pass");
    expect(skyrl.capabilities.entropies).toBe(false);
  });

  it(
    "scores like the embedded engine before its adapters are trained",
    async () => {
      const [theirs, ours] = await Promise.all(
        [skyrl, embedded].map((engine) => engine.forward(some, {})),
      );
      const difference = apart(
        theirs!.map(({ logprobs }) => logprobs),
        ours!.map(({ logprobs }) => logprobs),
      );
      expect(difference).toBeLessThan(1e-4);
    },
    10 * MINUTES,
  );

  it(
    "learns our objective in two passes, and samples with the new weights",
    async () => {
      const inputs = some.map(({ ids }) => ({
        old: Array.from(ids, () => -3),
        advantage: Array.from(ids, () => 0.01),
        limit: Array.from(ids, () => 1),
      }));
      const policy = some.map((sequence, i) => ({ ...sequence, inputs: inputs[i]! }));
      const [theirs, ours] = await Promise.all(
        [skyrl, embedded].map((engine) => engine.forwardBackward(policy, clipped)),
      );
      expect(theirs!.loss).toBeCloseTo(ours!.loss, 4);
      await skyrl.optimStep({ learningRate: 1e-2 });
      const losses: number[] = [];
      for (let step = 0; step < 4; step++) {
        losses.push((await skyrl.forwardBackward(some, crossEntropy)).loss);
        await skyrl.optimStep({ learningRate: 1e-2 });
      }
      expect(losses.at(-1)).toBeLessThan(losses[0]!);

      const prompt = [3, 4, 5];
      const [sample] = await skyrl.sample([{ prompt, maxTokens: 4, temperature: 1, seed: 7 }]);
      const { tokens, logprobs } = sample![0]!;
      const ids = [...prompt, ...tokens];
      const targets = ids.map((_, i) => (i < prompt.length ? 0 : 1));
      const [scored] = await skyrl.forward([{ ids, targets }], {});
      expect(apart([logprobs], [scored!.logprobs.slice(-tokens.length)])).toBeLessThan(1e-3);
    },
    10 * MINUTES,
  );

  it(
    "restores what was saved",
    async () => {
      const checkpoint = join(parent, "checkpoint");
      const score = async () => (await skyrl.forward(some, {})).map(({ logprobs }) => logprobs);
      const before = await score();
      await skyrl.save(checkpoint);
      await skyrl.forwardBackward(some, crossEntropy);
      await skyrl.optimStep({ learningRate: 1e-2 });
      expect(apart(await score(), before)).toBeGreaterThan(1e-3);
      await skyrl.load(checkpoint);
      expect(apart(await score(), before)).toBeLessThan(1e-5);
    },
    10 * MINUTES,
  );

  it(
    "is trained on, and a run is resumed",
    async () => {
      // Its models take the server's places for adapters.
      await skyrl.dispose();
      const run = join(parent, "run");
      const config = configFor(server.url, folder);
      await trainRun(config, { folder: run });
      await trainRun({ ...config, updates: 2 }, { folder: run, resume: true });
      const { manifest, ...recorded } = openRun(run, () => undefined);
      expect(manifest.status).toBe("done");
      const lines = recorded.metrics().filter(({ update }) => update! >= 0);
      expect(lines.map(({ update }) => update)).toEqual([0, 1]);
      for (const line of lines) expect(line["mismatch.mean"]).toBeLessThan(1e-4);
      expect(lines[0]!["policy.kl"]).toBeCloseTo(0, 6);
    },
    20 * MINUTES,
  );
});

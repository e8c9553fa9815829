/** An engine with a sampler, against a stand-in for the wire formats of vLLM and SGLang. */
import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { some } from "@pawl/core/dose-testing.js";
import { roadChecks } from "@pawl/core/engine/conformance-testing.js";
import { crossEntropy, learn, toy } from "@pawl/core/engine/conformance-tools-testing.js";
import type { Engine, Sample } from "@pawl/core/engine/engine.js";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { inProcess, testModel } from "../remote/model-testing.js";
import { startTestServer, type TestServer } from "../remote/server-testing.js";
import { withSampler } from "./sampler-engine.js";
import { type StandIn, type StandInOptions, startStandIn } from "./server-testing.js";

const folder = mkdtempSync(join(tmpdir(), "pawl-sampler-test-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

// The others do not sample, so the engine itself passes them.
const samples =
  /sampled log-probabilities equal|an actor keeps|its seed|temperature 0|stop sequence|rejected with/;
const checks = roadChecks.filter(({ name }) => samples.test(name));
const retry = { retries: 1, backoffMs: 1 };

/** A fresh engine with the sampler at this address. */
async function sampledBy(url: string, more: object = {}): Promise<Engine> {
  const engine = await inProcess(testModel);
  try {
    return await withSampler(engine, { url, folder, retry, ...more });
  } catch (error) {
    await engine.dispose();
    throw error;
  }
}

for (const kind of ["vllm", "sglang"] as const)
  describe(`an engine sampled by ${kind}`, () => {
    let server: StandIn;
    beforeAll(async () => {
      server = await startStandIn({ kind, model: testModel });
    });
    afterAll(() => server.close());

    for (const { name, run } of kind === "vllm" ? checks : some(checks))
      it(name, async () => {
        const before = server.calls.length;
        await run(() => sampledBy(`${server.url}/v1/`));
        expect(server.calls.length).toBeGreaterThan(before);
      });

    it("loads weights once after they have changed, and leaves no folder behind", async () => {
      const engine = await sampledBy(server.url);
      expect(engine.capabilities).toMatchObject({
        otherSampler: true,
        vocabularySize: 37,
        temperatures: false,
      });
      const request = { prompt: [1, 2], maxTokens: 3, seed: 1 };
      const reloads = () =>
        server.calls.filter(({ path }) => /collective_rpc|from_disk/.test(path)).length;
      const before = reloads();
      await Promise.all([engine.sample([request]), engine.sample([request])]);
      expect(reloads()).toBe(before);
      await engine.forwardBackward(toy, crossEntropy);
      await engine.optimStep({ learningRate: 1e-3 });
      await Promise.all([engine.sample([request]), engine.sample([request])]);
      expect(reloads()).toBe(before + 1);
      expect(readdirSync(folder)).toHaveLength(1);
      await engine.dispose();
      expect(readdirSync(folder)).toEqual([]);
    });

    it("samples with old weights if it ignores new ones, as its log-probabilities show", async () => {
      const engine = await sampledBy(server.url);
      server.stale = true;
      await learn(engine, toy, 20);
      const [[sample]] = (await engine.sample([{ prompt: [3], maxTokens: 8, seed: 2 }])) as [
        [Sample],
      ];
      server.stale = false;
      const [scored] = await engine.forward([{ ids: [3, ...sample.tokens] }]);
      const apart = sample.logprobs.map((x, i) => Math.abs(x - scored!.logprobs[i + 1]!));
      expect(Math.max(...apart)).toBeGreaterThan(0.1);
      await engine.dispose();
    });
  });

describe("an engine sampled by an engine server", () => {
  const checkpoints = join(folder, "..", `${basename(folder)}-checkpoints`);
  let server: TestServer;
  beforeAll(async () => {
    server = await startTestServer({ model: testModel, folder: checkpoints, extensions: true });
  });
  afterAll(async () => {
    await server.close();
    rmSync(checkpoints, { recursive: true, force: true });
  });

  for (const { name, run } of some(checks))
    it(name, async () => {
      const before = server.counts.get("sample_batch") ?? 0;
      await run(() => sampledBy(server.url));
      expect(server.counts.get("sample_batch")).toBeGreaterThan(before);
    });

  it("reports log-probabilities at all temperatures, and new weights once", async () => {
    const engine = await sampledBy(server.url);
    expect(engine.capabilities).toMatchObject({
      otherSampler: true,
      temperatures: true,
      actor: "meanwhile",
      name: `embedded, sampled by the engine server at ${server.url}`,
    });
    const loads = () => server.counts.get("load_weights") ?? 0;
    const before = loads();
    const request = { prompt: [1, 2], maxTokens: 3, seed: 1, temperature: 0.5 };
    const [[first]] = (await engine.sample([request])) as [[Sample]];
    expect(first.sampledLogprobs).not.toEqual(first.logprobs);
    expect(loads()).toBe(before);
    await learn(engine, toy, 20);
    await Promise.all([engine.sample([request]), engine.sample([request])]);
    expect(loads()).toBe(before + 1);
    const [[later]] = (await engine.sample([request])) as [[Sample]];
    const [scored] = await engine.forward([{ ids: [1, 2, ...later.tokens] }]);
    for (const [i, logprob] of later.logprobs.entries())
      expect(logprob).toBeCloseTo(scored!.logprobs[i + 2]!, 4);
    await engine.dispose();
    expect(readdirSync(folder)).toEqual([]);
  });
});

it("the engine can go on while the sampler loads the weights to act with", async () => {
  let open: (() => void) | undefined;
  const gate = new Promise<void>((resolve) => {
    open = resolve;
  });
  let isHeld = false;
  const server = await startStandIn({
    kind: "vllm",
    model: testModel,
    change: async (path, answer) => {
      if (isHeld && path === "/collective_rpc") await gate;
      return answer;
    },
  });
  const engine = await sampledBy(server.url);
  await learn(engine, toy, 1);
  isHeld = true;
  await engine.snapshotActor();
  const [before] = await engine.forward(toy);
  await learn(engine, toy, 5);
  let isDrawn = false;
  const drawing = engine.sample([{ prompt: [1], maxTokens: 4, seed: 0 }], { weights: "actor" });
  void drawing.then(() => {
    isDrawn = true;
  });
  const [after] = await engine.forward(toy);
  expect(isDrawn).toBe(false);
  expect(after!.logprobs).not.toEqual(before!.logprobs);
  open!();
  await drawing;
  await engine.dispose();
  await server.close();
});

describe("a sampler's log-probabilities of the distribution", () => {
  it("are returned if they follow from the model's own, and otherwise left out", async () => {
    const server = await startStandIn({ kind: "vllm", model: testModel });
    const engine = await sampledBy(server.url);
    const request = { prompt: [1], maxTokens: 4, seed: 0 };
    const results = await engine.sample([
      request,
      { ...request, temperature: 0 },
      { ...request, temperature: 0.7 },
      { ...request, topK: 3 },
    ]);
    const [plain, greedy, cold, cut] = results.map(([sample]) => sample!);
    expect(plain!.sampledLogprobs).toEqual(plain!.logprobs);
    expect(greedy!.sampledLogprobs).toEqual([0, 0, 0, 0]);
    expect(cold!.sampledLogprobs).toBeUndefined();
    expect(cut!.sampledLogprobs).toBeUndefined();
    await engine.dispose();
    await server.close();
  });
});

describe("an unsuitable sampler is rejected by name", () => {
  let server: StandIn | undefined;
  afterEach(async () => {
    await server?.close();
    server = undefined;
    expect(readdirSync(folder)).toEqual([]);
  });
  const start = async (options: Partial<StandInOptions>) => {
    server = await startStandIn({ kind: "vllm", model: testModel, ...options });
    return server.url;
  };
  const refused = async (options: Partial<StandInOptions>, reason: RegExp, more: object = {}) =>
    expect(start(options).then((url) => sampledBy(url, more))).rejects.toThrow(reason);

  it("if nothing answers", async () => {
    await expect(sampledBy("http://127.0.0.1:9")).rejects.toThrow(
      /no sampler answers at http:\/\/127.0.0.1:9 .*check that it is running/,
    );
    await expect(sampledBy("http://me:secret@127.0.0.1:9")).rejects.toThrow(
      /must not contain a user name or password; put the key in PAWL_SAMPLER_API_KEY/,
    );
    await expect(sampledBy("ftp://somewhere")).rejects.toThrow(/such as http:/);
  });

  it("if there is no folder for its weights", () =>
    refused({}, /cannot create a folder .* in .*absent.*choose another with engine.samplerFolder/, {
      folder: join(folder, "absent"),
    }));

  it("if vLLM was started without the calls for weights", () =>
    refused({ development: false }, /^vLLM 0.32.0 at .* start it with VLLM_SERVER_DEV_MODE=1/));

  it("if it keeps old weights, or has another vocabulary than it reports", async () => {
    const url = await start({});
    server!.stale = true;
    await expect(sampledBy(url)).rejects.toThrow(/vLLM .* keeps old weights.*-3\.611, but/);
    await server!.close();
    const kept = await start({ kind: "sglang" });
    server!.stale = true;
    await expect(sampledBy(kept)).rejects.toThrow(/SGLang .* keeps old weights/);
  });

  it("if its log-probabilities are not the model's own", async () => {
    await refused(
      { kind: "sglang", tempered: true },
      /^SGLang at .*expected the model's own: start it with SGLANG_RETURN_ORIGINAL_LOGPROB=1/,
    );
    await server!.close();
    await refused({ tempered: true }, /--logprobs-mode raw_logprobs/);
  });

  it("if it is not a sampler, or its model has another name", async () => {
    const change = () => ({ hello: "world" });
    await refused(
      { change },
      /not a sampler: GET \/v1\/models returned status 200 and no list of models/,
    );
    await server!.close();
    const neither = (path: string, answer: object) => (path === "/version" ? {} : answer);
    await refused({ change: neither }, /neither vLLM .* nor SGLang/);
    await server!.close();
    const models = ["a", "b"];
    await refused({ models }, /has a, b; choose one of them with engine.samplerModel/);
    await server!.close();
    await refused({ models }, /has a, b; engine.samplerModel names c/, { model: "c" });
    await server!.close();
    const engine = await sampledBy(await start({ models }), { model: "b" });
    expect(server!.calls.at(-1)!.body.model).toBe("b");
    await engine.dispose();
  });

  it("if its context is shorter, or its model has another shape", async () => {
    const { config } = testModel.model as { readonly config: object };
    const changed = (change: object) =>
      ({ ...testModel, model: { config: { ...config, ...change } } }) as StandInOptions["model"];
    await refused(
      { model: changed({ maxContext: 64 }) },
      /takes 64 tokens and the model 96: start it with --max-model-len 96/,
    );
    await server!.close();
    const model = changed({ vocabularySize: 40 });
    await refused({ model }, /collective_rpc failed 2 times.*status 500/);
    await server!.close();
    await refused({ kind: "sglang", model }, /update_weights_from_disk failed with.*status 400/);
  });

  it("if it requires a key, which no error reveals", async () => {
    await refused({ key: "open sesame" }, /status 401.*PAWL_SAMPLER_API_KEY/);
    await server!.close();
    process.env.PAWL_SAMPLER_API_KEY = "the-key";
    try {
      const url = await start({
        key: "the-key",
        change(path, answer) {
          if (path === "/v1/completions") throw new Error("the-key is known here");
          return answer;
        },
      });
      const failure = await sampledBy(url).catch((error: unknown) => error);
      expect(String(failure)).toMatch(/completions failed.*\[key\] is known here/);
      expect(String(failure)).not.toContain("the-key");
    } finally {
      delete process.env.PAWL_SAMPLER_API_KEY;
    }
  });
});

describe("an invalid answer is reported", () => {
  const request = { prompt: [1], maxTokens: 4, seed: 0, stop: [[5]] };
  const choice = (tokens: readonly number[], logprobs: readonly (number | null)[]) => ({
    choices: [{ token_ids: tokens, logprobs: { token_logprobs: logprobs } }],
  });
  const cases: readonly (readonly [string, unknown, RegExp])[] = [
    ["no object", 3, /completions failed 2 times.*status 200, but/],
    ["no tokens", { choices: [{ text: "hello" }] }, /choices\.0\.token_ids/],
    ["null", choice([1, 2, 3, 4], [-1, null, -1, -1]), /logprobs\.token_logprobs\.1/],
    ["foreign tokens", choice([1, 2, 3, 99], [-1, -1, -1, -1]), /drew token 99.*model has 37/],
    ["few numbers", choice([1, 2, 3, 4], [-1]), /sent 4 tokens with log-probabilities \[-1\]/],
    [
      "an early end",
      choice([1, 2], [-1, -1]),
      /ended a sample after 2 of 4 tokens.*without one of our/,
    ],
  ];
  for (const [name, wrong, reason] of cases)
    it(name, async () => {
      let broken = false;
      const server = await startStandIn({
        kind: "vllm",
        model: testModel,
        change: (path, answer) => (broken && path === "/v1/completions" ? wrong : answer),
      });
      const engine = await sampledBy(server.url);
      broken = true;
      await expect(engine.sample([request])).rejects.toThrow(reason);
      await engine.dispose();
      await server.close();
    });

  it("and so is a server that is gone", async () => {
    const server = await startStandIn({ kind: "vllm", model: testModel });
    const engine = await sampledBy(server.url);
    await server.close();
    await expect(engine.sample([request])).rejects.toThrow(
      /completions failed 2 times, most recently with ECONNREFUSED.*resume the run from its last checkpoint/,
    );
    await engine.dispose();
    expect(existsSync(folder)).toBe(true);
  });
});

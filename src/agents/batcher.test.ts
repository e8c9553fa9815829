import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createEmbeddedEngine } from "../engine/embedded/embedded-engine.js";
import type { Engine, Sample, SampleRequest } from "../engine/engine.js";
import { createRandom } from "../random.js";
import { createBatcher } from "./batcher.js";

let engine: Engine;
beforeAll(async () => {
  const model = { preset: "tiny", vocabularySize: 40, maxContext: 256 } as const;
  engine = await createEmbeddedEngine({ model, seed: 3, threads: 1 });
});
afterAll(() => engine.dispose());

const random = createRandom(1);
const draw = (count: number) => Array.from({ length: count }, () => random.int(40));
const longRequests = (count: number) =>
  Array.from({ length: count }, (_, seed) => ({
    prompt: draw(17 + seed),
    maxTokens: 10 + 9 * seed,
    stop: [[7, 8]],
    continued: true,
    seed,
  }));

/** The engine, with a list of what it was asked. */
function watched() {
  const calls: (readonly SampleRequest[])[] = [];
  const sample = (requests: readonly SampleRequest[]) => {
    calls.push(requests);
    return engine.sample(requests);
  };
  return { calls, engine: { sample, capabilities: engine.capabilities } };
}

it("gives a request the same tokens in any company, with the model's own log-probabilities", async () => {
  const requests = longRequests(9);
  const alone: Sample[] = [];
  for (const request of requests)
    alone.push(await createBatcher(engine, { sliceTokens: 8 }).sample(request));
  const { calls, engine: seen } = watched();
  const batcher = createBatcher(seen, { sliceTokens: 8 });
  const together = await Promise.all(requests.map((request) => batcher.sample(request)));
  expect(together.map(({ tokens }) => tokens)).toEqual(alone.map(({ tokens }) => tokens));
  expect(together.map(({ stopReason }) => stopReason)).toContain("length");
  expect(calls[0]).toHaveLength(9);
  expect(calls.at(-1)!.length).toBeLessThan(9);
  const scored = await engine.forward(
    together.map(({ tokens }, i) => ({ ids: [...requests[i]!.prompt, ...tokens] })),
  );
  together.forEach(({ tokens, logprobs, sampledLogprobs }, i) => {
    const expected = scored[i]!.logprobs.slice(-tokens.length);
    expect([logprobs.length, sampledLogprobs!.length]).toEqual([tokens.length, tokens.length]);
    logprobs.forEach((value, at) => {
      expect(Math.abs(value - expected[at]!)).toBeLessThan(1e-4);
    });
  });
});

it("takes the slices of an engine that gives no log-probabilities of what was drawn", async () => {
  const bare = {
    capabilities: engine.capabilities,
    sample: async (requests: readonly SampleRequest[]) =>
      (await engine.sample(requests)).map((group) =>
        group.map(({ sampledLogprobs: _, ...sample }) => sample),
      ),
  };
  const request = { prompt: draw(20), maxTokens: 12, seed: 5 };
  const sample = await createBatcher(bare, { sliceTokens: 4 }).sample(request);
  expect(sample.logprobs).toHaveLength(sample.tokens.length);
  expect(sample.sampledLogprobs).toBeUndefined();
});

it("samples a short answer as the engine would", async () => {
  const request = { prompt: draw(20), maxTokens: 12, seed: 5 };
  const [[direct]] = (await engine.sample([request])) as [[Sample]];
  expect((await createBatcher(engine).sample(request)).tokens).toEqual(direct.tokens);
});

it("ends at a stop sequence that lies across two slices", async () => {
  const request = { prompt: draw(20), maxTokens: 40, seed: 0 };
  const plain = await createBatcher(engine, { sliceTokens: 4 }).sample(request);
  const stop = [plain.tokens.slice(2, 6)];
  const stopped = await createBatcher(engine, { sliceTokens: 4 }).sample({ ...request, stop });
  expect(stopped.tokens).toEqual(plain.tokens.slice(0, 6));
  expect([stopped.logprobs.length, stopped.stopReason]).toEqual([6, "stop"]);
});

describe("requests that come and go", () => {
  it("lets a short request join a long one and leave before it", async () => {
    const { calls, engine: seen } = watched();
    const batcher = createBatcher(seen, { sliceTokens: 4 });
    const ended: string[] = [];
    const long = batcher.sample({ prompt: draw(20), maxTokens: 200, seed: 0 });
    void long.then(() => ended.push("long"));
    while (calls.length < 2) await new Promise(setImmediate);
    await batcher.sample({ prompt: draw(30), maxTokens: 6, seed: 1 });
    ended.push("short");
    expect((await long).tokens).toHaveLength(200);
    expect(ended).toEqual(["short", "long"]);
    expect(calls.map((call) => call.length).filter((rows) => rows === 2)).toHaveLength(2);
  });

  it("takes at most so many at once, in the order they came", async () => {
    const { calls, engine: seen } = watched();
    const batcher = createBatcher(seen, { maxRows: 2 });
    const order: number[] = [];
    await Promise.all(
      [0, 1, 2, 3, 4].map(async (seed) => {
        await batcher.sample({ prompt: draw(20), maxTokens: 3, seed });
        order.push(seed);
      }),
    );
    expect(calls.map((call) => call.length)).toEqual([2, 2, 1]);
    expect(order).toEqual([0, 1, 2, 3, 4]);
  });

  it("rejects an aborted request at once, and samples no more of it", async () => {
    const { calls, engine: seen } = watched();
    const batcher = createBatcher(seen, { sliceTokens: 4 });
    const [running, early] = [new AbortController(), new AbortController()];
    const other = batcher.sample({ prompt: draw(20), maxTokens: 30, seed: 0 });
    const left = batcher.sample({ prompt: draw(20), maxTokens: 200, seed: 1 }, running.signal);
    while (calls.length < 1) await new Promise(setImmediate);
    const waits = batcher.sample({ prompt: draw(20), maxTokens: 9, seed: 2 }, early.signal);
    const begun = calls.length;
    running.abort(new Error("gone"));
    early.abort(new Error("never mind"));
    await expect(left).rejects.toThrow("gone");
    await expect(waits).rejects.toThrow("never mind");
    expect((await other).tokens).toHaveLength(30);
    expect(calls.slice(begun).every((call) => call.length === 1)).toBe(true);
    await expect(
      batcher.sample({ prompt: [1], maxTokens: 1, seed: 0 }, running.signal),
    ).rejects.toThrow("gone");
  });

  it("gives a bad request its own error, and the others their answers", async () => {
    const batcher = createBatcher(engine);
    const ends = await Promise.allSettled([
      batcher.sample({ prompt: draw(20), maxTokens: 5, seed: 0 }),
      batcher.sample({ prompt: [1, 2, 99], maxTokens: 5, seed: 0 }),
      batcher.sample({ prompt: draw(20), maxTokens: 999, seed: 0 }),
      batcher.sample({ prompt: draw(20), maxTokens: 5, seed: 1 }),
    ]);
    expect(ends.map((end) => end.status)).toEqual([
      "fulfilled",
      "rejected",
      "rejected",
      "fulfilled",
    ]);
    const reasons = ends.flatMap((end) => (end.status === "rejected" ? [String(end.reason)] : []));
    expect(reasons[0]).toContain("token 2 is 99");
    expect(reasons[1]).toContain("20 tokens and 999 new ones exceed the model's context of 256");
  });
});

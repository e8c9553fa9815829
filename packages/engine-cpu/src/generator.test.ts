import { createRandom } from "@pawl/core/random.js";
import { expect, it } from "vitest";
import type { SampleTask } from "./batching.js";
import { createGenerator } from "./generator.js";
import { initialWeights, presetConfig } from "./init.js";
import type { WeightSet } from "./model-weights.js";
import { createSessions } from "./sessions.js";

const config = presetConfig("tiny", 32);
const random = createRandom(5);
const draw = (count: number) => Array.from({ length: count }, () => random.int(32));
const weightsOf = (seed: number, version: number): WeightSet => ({
  name: "policy",
  version,
  arrays: initialWeights(config, seed),
});

it.each([
  ["in graphs", { maxStoredBytes: 0, maxStoredDecodeBytes: 0 }, ["prefill", "decode", "extend"]],
  ["in all graphs but decode's", { maxStoredBytes: 0 }, ["prefill", "extend"]],
] as const)(
  "draws the same samples when a model is too large to store its weights %s",
  async (_, sizes, fedGraphs) => {
    const sessions = [createSessions(1), createSessions(1)] as const;
    const storing = createGenerator(config, sessions[0], { maxCachedBytes: 2 ** 24 });
    const asked = new Set<string>();
    const get: (typeof sessions)[1]["get"] = (key, ...more) => {
      asked.add(key);
      return sessions[1].get(key, ...more);
    };
    const feeding = createGenerator(
      config,
      { ...sessions[1], get },
      { maxCachedBytes: 2 ** 24, ...sizes },
    );
    const first: SampleTask[] = Array.from({ length: 5 }, (_, seed) => ({
      request: { prompt: draw(6 + seed), maxTokens: 4, temperature: 0.8, seed },
      first: 0,
      count: 1 + (seed % 2),
      cacheAs: seed % 2 === 0 ? seed : undefined,
    }));
    // New weights under a new version, which graphs that store them must notice.
    for (const weights of [weightsOf(1, 1), weightsOf(2, 2)]) {
      let tasks: readonly SampleTask[] = first;
      for (let turn = 0; turn < 2; turn++) {
        const [stored, fed] = await Promise.all([
          storing.sample(tasks, weights),
          feeding.sample(tasks, weights),
        ]);
        stored.forEach((samples, g) => {
          samples.forEach((sample, r) => {
            const other = fed[g]![r]!;
            expect(other.tokens).toEqual(sample.tokens);
            sample.logprobs.forEach((value, i) => {
              expect(other.logprobs[i]).toBeCloseTo(value, 5);
            });
          });
        });
        // The next turn continues what was kept, with other graphs.
        tasks = tasks.flatMap((task, g) => {
          if (task.cacheAs === undefined) return [];
          const read = [...Array.from(task.request.prompt), ...fed[g]![0]!.tokens];
          const prefix = { handle: task.cacheAs, tokens: read.length - 1 };
          return [{ ...task, request: { ...task.request, prompt: [...read, ...draw(3)] }, prefix }];
        });
        expect(tasks).toHaveLength(3);
      }
    }
    // Graphs that hold weights belong to a set of them.
    expect([...asked].filter((key) => !key.startsWith("policy "))).toEqual(fedGraphs);
    await Promise.all(sessions.map((each) => each.dispose()));
  },
);

it("computes once what several samples of a prompt begin with", async () => {
  const sessions = createSessions(1);
  let decoded = 0;
  const get: typeof sessions.get = async (key, ...more) => {
    const compiled = await sessions.get(key, ...more);
    const run: typeof compiled.run = (feeds, into) => {
      if (key.endsWith("decode")) decoded += feeds.positions!.data.length;
      return compiled.run(feeds, into);
    };
    return { ...compiled, run };
  };
  const { sample } = createGenerator(config, { ...sessions, get }, { maxCachedBytes: 2 ** 24 });
  const weights = weightsOf(1, 1);
  const tokens = createRandom(7);
  const temperatures = [0, 0.15, 0.2, 0.25, 1];
  const requests = temperatures.map((temperature, seed) => ({
    ...{ seed, temperature, maxTokens: 9, stop: [[3], [9, 4]] },
    prompt: Array.from({ length: 6 + seed }, () => tokens.int(32)),
  }));
  const together = await sample(
    requests.map((request) => ({ request, first: 0, count: 8 })),
    weights,
  );
  const some = decoded;
  const alone = await sample(
    requests.flatMap((request) =>
      Array.from({ length: 8 }, (_, first) => ({ request, first, count: 1 })),
    ),
    weights,
  );
  expect(together.flat().map(({ tokens }) => tokens)).toEqual(
    alone.flat().map(({ tokens }) => tokens),
  );
  together.flat().forEach(({ logprobs }, i) => {
    logprobs.forEach((value, at) => {
      expect(value).toBeCloseTo(alone[i]![0]!.logprobs[at]!, 5);
    });
  });
  const kinds = together.map((samples) => new Set(samples.map(({ tokens }) => tokens.join())).size);
  expect(kinds[0]).toBe(1);
  expect(kinds.some((count) => count > 1 && count < 8)).toBe(true);
  expect(kinds[4]).toBeGreaterThan(5);
  expect(some).toBeLessThan(decoded - some);
  await sessions.dispose();
});

it("reads a prompt once that several tasks begin with", async () => {
  const sessions = createSessions(1);
  const read: number[] = [];
  const get: typeof sessions.get = async (key, ...more) => {
    const compiled = await sessions.get(key, ...more);
    const run: typeof compiled.run = (feeds, into) => {
      if (key.endsWith("prefill")) read.push(feeds.lastTokens!.data.length);
      return compiled.run(feeds, into);
    };
    return { ...compiled, run };
  };
  const { sample } = createGenerator(config, { ...sessions, get }, { maxCachedBytes: 2 ** 24 });
  const weights = weightsOf(1, 1);
  const [a, b] = [draw(20), draw(17)];
  const begun = [
    { prompt: a, temperature: 0.9 },
    { prompt: b, temperature: 0.9 },
    { prompt: a, temperature: 0.9 },
    { prompt: a, temperature: 0.5 },
    { prompt: b, temperature: 0.9 },
  ];
  let tasks: readonly SampleTask[] = begun.map((given, seed) => ({
    request: { ...given, seed, maxTokens: 4 },
    ...{ first: 0, count: 1, cacheAs: seed },
  }));
  for (let turn = 0; turn < 2; turn++) {
    const together = await sample(tasks, weights);
    for (const [i, { request }] of tasks.entries()) {
      const alone = await sample([{ request, first: 0, count: 1 }], weights);
      const { tokens, logprobs } = alone[0]![0]!;
      expect(together[i]![0]!.tokens).toEqual(tokens);
      logprobs.forEach((value, at) => {
        expect(together[i]![0]!.logprobs[at]).toBeCloseTo(value, 5);
      });
    }
    // Each goes on by itself.
    tasks = tasks.map(({ request, cacheAs, ...task }, i) => {
      const prompt = [...Array.from(request.prompt), ...together[i]![0]!.tokens];
      const prefix = { handle: cacheAs!, tokens: prompt.length - 1 };
      return {
        ...task,
        request: { ...request, prompt: [...prompt, ...draw(1 + i)] },
        cacheAs,
        prefix,
      };
    });
  }
  // One prompt at two temperatures is read for each.
  expect(read.slice(0, 6)).toEqual([3, 1, 1, 1, 1, 1]);
  await sessions.dispose();
});

/**
 * The real vLLM as a sampler.
 *
 * Runs if PAWL_VLLM is the address of one in development mode, and PAWL_VLLM_MODEL the folder of
 * the checkpoint that it serves in float32; docs/remote-engines.md explains how to start one. On a
 * CPU the checkpoint needs an untied output head, because vLLM keeps the old head of a model with
 * tied embeddings there.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { learn, toy } from "../src/engine/conformance-tools-testing.js";
import { createEmbeddedEngine } from "../src/engine/embedded/embedded-engine.js";
import type { Engine, Sample, SampleRequest } from "../src/engine/engine.js";
import { withSampler } from "../src/engine/sampler/sampler-engine.js";

const { PAWL_VLLM: url, PAWL_VLLM_MODEL: folder } = process.env;
const absent = url === undefined || folder === undefined;
if (absent) console.warn("vLLM is not tested: PAWL_VLLM and PAWL_VLLM_MODEL name none");
const MINUTES = 60_000;

describe.skipIf(absent)("vLLM", () => {
  let engine: Engine;
  beforeAll(async () => {
    const own = await createEmbeddedEngine({ model: { folder: folder! } });
    engine = await withSampler(own, { url: url! });
  }, 2 * MINUTES);
  afterAll(() => engine?.dispose());

  const requests: readonly SampleRequest[] = Array.from({ length: 24 }, (_, i) => ({
    prompt: Array.from({ length: 1 + i * 3 }, (__, j) => (i + 5 * j) % 32),
    maxTokens: 16,
    seed: i,
    temperature: [1, 0.6, 1, 0][i % 4]!,
    topK: i % 4 === 2 ? 5 : 0,
  }));
  const drawn = async (asked: readonly SampleRequest[]): Promise<readonly Sample[]> =>
    (await engine.sample(asked)).map(([sample]) => sample!);

  /** The largest difference of a sample's log-probabilities from those of the engine. */
  const apart = async (samples: readonly Sample[]): Promise<number> => {
    const sequences = samples.map(({ tokens }, i) => {
      const prompt = Array.from(requests[i]!.prompt);
      return {
        ids: [...prompt, ...tokens],
        targets: [...prompt.map(() => 0), ...tokens.map(() => 1)],
      };
    });
    const scored = await engine.forward(sequences);
    return Math.max(
      ...samples.flatMap(({ logprobs }, i) => {
        const own = scored[i]!.logprobs.slice(-logprobs.length);
        return logprobs.map((logprob, j) => Math.abs(logprob - own[j]!));
      }),
    );
  };

  it(
    "returns the engine's log-probabilities, at any temperature",
    async () => {
      expect(engine.capabilities.name).toMatch(/sampled by vLLM \d/);
      expect(await apart(await drawn(requests))).toBeLessThan(1e-4);
    },
    2 * MINUTES,
  );

  it(
    "samples with new weights after a change, and not with cached results",
    async () => {
      const before = await drawn(requests);
      await learn(engine, toy, 20);
      expect(await apart(before)).toBeGreaterThan(0.1);
      const after = await drawn(requests);
      const difference = await apart(after);
      console.warn(`vLLM: largest difference after 20 updates ${difference.toExponential(1)}`);
      expect(difference).toBeLessThan(1e-4);
      expect(after.map(({ tokens }) => tokens)).not.toEqual(before.map(({ tokens }) => tokens));
    },
    2 * MINUTES,
  );

  it(
    "draws the same with the same seed, and ends at stop sequences of one and two tokens",
    async () => {
      const request = { prompt: [3, 4, 5], maxTokens: 24, seed: 3, count: 3 };
      const [free] = await engine.sample([request]);
      const [again] = await engine.sample([request]);
      expect(again!.map(({ tokens }) => tokens)).toEqual(free!.map(({ tokens }) => tokens));
      expect(free![0]!.tokens).not.toEqual(free![1]!.tokens);
      expect(free!.map(({ stopReason }) => stopReason)).toEqual(["length", "length", "length"]);
      const whole = free![1]!.tokens;
      for (const stop of [whole.slice(6, 7), whole.slice(6, 8)]) {
        const [ended] = await engine.sample([{ ...request, stop: [stop] }]);
        const { tokens, logprobs, stopReason } = ended![1]!;
        expect(stopReason).toBe("stop");
        expect(tokens.slice(-stop.length)).toEqual(stop);
        expect(tokens).toEqual(whole.slice(0, tokens.length));
        expect(logprobs).toHaveLength(tokens.length);
      }
    },
    2 * MINUTES,
  );
});

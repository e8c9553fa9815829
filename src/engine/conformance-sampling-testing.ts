/** What every engine must do when it samples (`conformance.ts`). */
import assert from "node:assert/strict";
import {
  type ConformanceCheck,
  chiSquare,
  chiSquareLimit,
  close,
  continuations,
  learn,
  scores,
  tempered,
  toy,
  using,
} from "./conformance-tools-testing.js";

/** Seeds, limits, stops, greedy choice, and that draws follow the probabilities. */
export const samplingChecks: readonly ConformanceCheck[] = [
  {
    name: "sampled log-probabilities equal those of forward, to 1e-4",
    run: (create) =>
      using(create, async (engine) => {
        // Sampled from before, to catch an engine that keeps old weights for sampling.
        await engine.sample([{ prompt: [1], maxTokens: 2, seed: 0 }]);
        await learn(engine, toy, 3);
        const prompts = [[1, 2, 3], [4], [5, 6, 7, 8, 9, 10, 11, 12, 13]];
        const results = await engine.sample(
          prompts.map((prompt, i) => ({
            prompt,
            count: 3,
            maxTokens: 20,
            seed: i,
            temperature: i === 1 ? 0.6 : 1,
            topK: i === 2 ? 4 : 0,
          })),
        );
        for (const [i, samples] of results.entries()) {
          assert.equal(samples.length, 3);
          for (const { tokens, logprobs, sampledLogprobs } of samples) {
            const all = await scores(engine, [...prompts[i]!, ...tokens]);
            close(logprobs, all.subarray(prompts[i]!.length), 1e-4);
            if (i === 0) close(sampledLogprobs!, logprobs, 1e-4);
            if (i === 2) assert.ok(sampledLogprobs?.every((x, j) => x > logprobs[j]!) ?? true);
          }
        }
      }),
  },
  {
    name: "a request's samples depend on its seed and not on its batch",
    run: (create) =>
      using(create, async (engine) => {
        const request = { prompt: [1, 2, 3, 4], count: 4, maxTokens: 12, seed: 7 };
        const [alone] = await engine.sample([request]);
        const others = [11, 12, 13].map((seed) => ({
          prompt: Array.from({ length: seed }, (_, i) => i),
          count: seed - 10,
          maxTokens: seed,
          seed,
        }));
        const among = await engine.sample([others[0]!, request, ...others.slice(1), request]);
        const tokens = (samples: typeof alone) => samples!.map((sample) => sample.tokens);
        assert.deepEqual(tokens(among[1]), tokens(alone));
        assert.deepEqual(tokens(among[4]), tokens(alone));
        assert.notDeepEqual(tokens(alone)[0], tokens(alone)[1]);
        const [other] = await engine.sample([{ ...request, seed: 8 }]);
        assert.notDeepEqual(tokens(other), tokens(alone));
      }),
  },
  {
    name: "rows that end early do not affect those that continue",
    run: (create) =>
      using(create, async (engine) => {
        await learn(engine, toy, 2);
        const request = (seed: number, maxTokens: number) => ({
          prompt: Array.from({ length: 1 + (seed % 5) }, (_, i) => (seed + i) % 32),
          count: 1 + (seed % 3),
          maxTokens,
          seed,
        });
        const seeds = Array.from({ length: 12 }, (_, i) => i);
        const full = await engine.sample(seeds.map((seed) => request(seed, 40)));
        const cut = await engine.sample(seeds.map((seed) => request(seed, 1 + seed * 3)));
        cut.forEach((samples, i) => {
          samples.forEach(({ tokens }, j) => {
            assert.deepEqual(tokens, full[i]![j]!.tokens.slice(0, 1 + i * 3));
          });
        });
      }),
  },
  {
    name: "temperature 0, top-k 1 and a tiny top-p all take the most probable token",
    run: (create) =>
      using(create, async (engine) => {
        await learn(engine, toy, 3);
        const request = { prompt: [3, 4, 5], maxTokens: 10, seed: 1 };
        const results = await engine.sample([
          { ...request, temperature: 0 },
          { ...request, topK: 1 },
          { ...request, topP: 1e-6 },
        ]);
        const [greedy, ...cut] = results.map((samples) => samples[0]!);
        for (const sample of cut) assert.deepEqual(sample.tokens, greedy!.tokens);
        close(greedy!.sampledLogprobs!, new Float32Array(10), 0);
      }),
  },
  {
    name: "sampling ends at a stop sequence, which is part of the sample, or at the limit",
    run: (create) =>
      using(create, async (engine) => {
        const request = { prompt: [3], maxTokens: 24, seed: 3, count: 4 };
        const [free] = await engine.sample([request]);
        for (const sample of free!) {
          assert.equal(sample.stopReason, "length");
          assert.equal(sample.tokens.length, 24);
        }
        const stop = free![2]!.tokens.slice(4, 6);
        const [ended] = await engine.sample([{ ...request, stop: [stop] }]);
        const { tokens, stopReason } = ended![2]!;
        assert.equal(stopReason, "stop");
        assert.deepEqual(tokens.slice(-2), stop);
        assert.deepEqual(tokens, free![2]!.tokens.slice(0, tokens.length));
      }),
  },
  {
    name: "an actor keeps the weights it was made with while others are learnt, if it has one",
    run: (create) =>
      using(create, async (engine) => {
        if (engine.capabilities.actor === undefined) {
          await assert.rejects(engine.snapshotActor());
          return;
        }
        await learn(engine, toy, 2);
        const requests = [1, 2, 3].map((seed) => ({ prompt: [3, 4, 5], maxTokens: 6, seed }));
        const before = await engine.sample(requests);
        await engine.snapshotActor();
        await learn(engine, toy, 8);
        assert.deepEqual(await engine.sample(requests, { weights: "actor" }), before);
        await engine.snapshotActor();
        const after = await engine.sample(requests, { weights: "actor" });
        assert.notDeepEqual(after, before);
        assert.deepEqual(await engine.sample(requests), after);
      }),
  },
  {
    name: "draws follow the probabilities of forward, at temperatures 1 and 0.6",
    run: (create) =>
      using(create, async (engine) => {
        await learn(engine, toy, 8);
        const prompt = [3, 4, 5];
        const own = await continuations(engine, prompt);
        const drawn = async (temperature: number) => {
          const request = { prompt, count: 2000, maxTokens: 1, seed: 11, temperature };
          const [samples] = await engine.sample([request]);
          return samples!.map(({ tokens }) => tokens[0]!);
        };
        const temperatures = [1, 0.6];
        for (const temperature of temperatures) {
          const tokens = await drawn(temperature);
          for (const other of temperatures) {
            const { statistic, cells } = chiSquare(tokens, tempered(own, other));
            // The same draws must not fit the other temperature, or the test would prove nothing.
            assert.equal(
              statistic < chiSquareLimit(cells - 1),
              other === temperature,
              `draws at temperature ${temperature} against probabilities at ${other}: chi-square ${statistic} over ${cells} cells`,
            );
          }
        }
      }),
  },
];

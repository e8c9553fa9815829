/**
 * What an engine with `capabilities.temperatures` must do at temperatures other than 1
 * (`conformance.ts`).
 */
import assert from "node:assert/strict";
import { add, entropy, input, logprob, mul, type Objective } from "../objectives/expression.js";
import {
  type ConformanceCheck,
  close,
  continuations,
  learn,
  scores,
  tempered,
  toy,
  using,
} from "./conformance-tools-testing.js";
import { type Engine, EngineError, type TrainSequence } from "./engine.js";

/** A check for engines that support temperatures; others are never asked for them. */
const withTemperatures = (work: (engine: Engine) => Promise<void>): ConformanceCheck["run"] => {
  return (create) =>
    using(create, async (engine) => {
      if (engine.capabilities.temperatures) await work(engine);
    });
};

/** A different temperature for each token of some sequences. */
const mixed = toy.map(({ ids }, i) => ({
  ids,
  temperatures: Array.from(ids, (_, j) => 0.5 + 0.25 * ((i + j) % 4)),
}));

/** Log-probabilities, entropies and gradients of scaled logits. */
export const temperatureChecks: readonly ConformanceCheck[] = [
  {
    name: "at a temperature, log-probabilities and entropies are those of the scaled logits, to 1e-4",
    run: withTemperatures(async (engine) => {
      await learn(engine, toy, 8);
      const prompt = [1, 2, 3, 4];
      const own = await continuations(engine, prompt);
      // In one batch, so that a temperature applied to a neighbour shows up.
      const temperatures = own.map((_, id) => [0.5, 1, 1.7][id % 3]!);
      const results = await engine.forward(
        own.map((_, id) => ({
          ids: [...prompt, id],
          targets: [0, 0, 0, 0, 1],
          temperatures: [1, 1, 1, 1, temperatures[id]!],
        })),
        { entropies: engine.capabilities.entropies },
      );
      for (const [id, temperature] of temperatures.entries()) {
        const expected = tempered(own, temperature);
        close([results[id]!.logprobs[4]!], [expected[id]!], 1e-4);
        const sum = expected.reduce((total, x) => total - Math.exp(x) * x, 0);
        if (engine.capabilities.entropies) close([results[id]!.entropies![4]!], [sum], 1e-4);
      }
    }),
  },
  {
    name: "a temperature affects only its own token, and 1 equals none, to 1e-5",
    run: withTemperatures(async (engine) => {
      await learn(engine, toy, 2);
      const [ids, place] = [Array.from(toy[1]!.ids), 7];
      const plain = await scores(engine, ids);
      const at = async (temperature: number) => {
        const temperatures = ids.map((_, i) => (i === place ? temperature : 1));
        return (await engine.forward([{ ids, temperatures }]))[0]!.logprobs;
      };
      close(await at(1), plain, 1e-5);
      const hot = await at(2);
      assert.ok(Math.abs(hot[place]! - plain[place]!) > 1e-3);
      hot[place] = plain[place]!;
      close(hot, plain, 1e-5);
    }),
  },
  {
    name: "log-probabilities sampled at a temperature equal those of forward at it, to 1e-4",
    run: withTemperatures(async (engine) => {
      await learn(engine, toy, 4);
      const prompt = [2, 3, 4];
      const request = { prompt, count: 3, maxTokens: 12, seed: 2, temperature: 0.6 };
      const [samples] = await engine.sample([request]);
      for (const { tokens, sampledLogprobs } of samples!) {
        const ids = [...prompt, ...tokens];
        const [result] = await engine.forward([{ ids, temperatures: ids.map(() => 0.6) }]);
        // If a server does not return them, they are scored instead.
        if (sampledLogprobs) close(sampledLogprobs, result!.logprobs.subarray(3), 1e-4);
      }
    }),
  },
  {
    name: "at temperatures, learning agrees with forward and follows the slope of its loss",
    run: withTemperatures(async (engine) => {
      await learn(engine, toy, 2);
      const { entropies } = engine.capabilities;
      const linear = mul(input("weight"), logprob);
      const objective: Objective = {
        loss: entropies ? add(linear, mul(input("bonus"), entropy)) : linear,
        metrics: {},
      };
      const sequences: readonly TrainSequence[] = mixed.map(({ ids, temperatures }, i) => ({
        ids,
        temperatures,
        inputs: {
          weight: Array.from(ids, (_, j) => ((i + j) % 3) * 4e-4 - 6e-4),
          ...(entropies && { bonus: Array.from(ids, (_, j) => (j % 2) * 4e-4) }),
        },
      }));
      const forward = await engine.forward(sequences);
      for (const sparse of [false, true]) {
        const before = await engine.forwardBackward(sequences, { ...objective, sparse });
        if (!sparse)
          for (const [i, { logprobs }] of forward.entries())
            close(before.logprobs[i]!, logprobs, 1e-4);
        // Without momentum and with such a large eps, the update is the gradient itself times the
        // rate.
        const rate = 0.2;
        const memoryless = { beta1: 0, beta2: 0, eps: 1, weightDecay: 0 };
        const { gradNorm } = await engine.optimStep({ learningRate: rate, ...memoryless });
        const after = await engine.forwardBackward(sequences, { ...objective, sparse });
        // The mean of the slopes at both ends is the slope between them, up to third order.
        const end = await engine.discardGradients();
        const expected = (rate * (gradNorm ** 2 + gradNorm * end.gradNorm)) / 2;
        close([(before.loss - after.loss) / expected], [1], 0.01);
      }
    }),
  },
  {
    name: "invalid temperatures are rejected",
    run: withTemperatures(async (engine) => {
      const refused = (temperatures: readonly number[], reason: RegExp) =>
        assert.rejects(
          engine.forward([{ ids: [1] }, { ids: [1, 2, 3], temperatures }]),
          (error) => error instanceof EngineError && reason.test(error.message),
        );
      await refused([1, 1], /sequence 1.*temperatures/);
      for (const value of [0, -1, Number.NaN, Number.POSITIVE_INFINITY])
        await refused([1, 1, value], /temperatures: token 2 of sequence 1/);
    }),
  },
];

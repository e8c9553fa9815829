/** The metrics of an update, from what an engine reports for each mini-batch. */
import { expect, it } from "vitest";
import type { Engine, TrainSequence } from "../engine/engine.js";
import type { Update } from "../update/update.js";
import { learn } from "./learn.js";
import { optimizerOptions } from "./schedule.js";

it("sums tokens, and takes the mean of losses and norms over mini-batches", async () => {
  const sequences = [2, 3, 4].map((length) => ({
    ids: new Array<number>(length).fill(1),
    targets: new Uint8Array(length).fill(1),
    steps: 2,
    inputs: {
      policyWeight: new Float32Array(length).fill(0.1),
      oldLogprob: new Float32Array(length),
    },
  }));
  const rates: number[] = [];
  const batches: number[][] = [];
  const engine = {
    forwardBackward: async (batch: readonly TrainSequence[]) => {
      batches.push(batch.map(({ ids }) => ids.length));
      return {
        loss: 6,
        metrics: { "policy.tokens": 2, "policy.p": 1, "policy.loss": 3 * batches.length },
        logprobs: batch.map(({ ids }) => new Float32Array(ids.length).fill(-0.5 * batches.length)),
      };
    },
    optimStep: async ({ learningRate }: { readonly learningRate: number }) => {
      rates.push(learningRate);
      return { gradNorm: rates.length };
    },
  } as unknown as Engine;
  const learnt = await learn(engine, { sequences } as unknown as Update, {
    objective: { loss: { op: "logprob" }, metrics: {} },
    aggregation: "token-mean",
    minibatch: 2,
    optimizer: optimizerOptions.parse({ learningRate: 8, warmup: 4 }),
    stepsBefore: 1,
    stepsInAll: 100,
    seed: 0,
  });
  // Each sequence is two steps, so each is a mini-batch of its own.
  expect(batches.map((lengths) => lengths.length)).toEqual([1, 1, 1]);
  expect(batches.flat().sort()).toEqual([2, 3, 4]);
  expect(learnt).toMatchObject({ tokens: 9, optimizerSteps: 3 });
  expect(learnt.metrics).toMatchObject({
    loss: 6,
    "policy.loss": 6,
    "policy.p": 0.5,
    gradNorm: 2,
    // Only the first batch is learnt with the weights that sampled it.
    "mismatch.mean": 0.5,
    "mismatch.max": 0.5,
  });
  // The learning rate rises over four steps, one of which was taken before.
  expect(rates).toEqual([4, 6, 8]);
});

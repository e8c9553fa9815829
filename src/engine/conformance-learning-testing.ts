/** What every engine must do when it learns (`conformance.ts`). */
import assert from "node:assert/strict";
import {
  entropy,
  input,
  logprob,
  mul,
  type Objective,
  sumObjectives,
} from "../objectives/expression.js";
import { evaluateObjective } from "../objectives/expression-evaluate.js";
import {
  type ConformanceCheck,
  clipped,
  close,
  crossEntropy,
  inFolder,
  learn,
  scores,
  toy,
  toySequences,
  using,
} from "./conformance-tools-testing.js";
import { EngineError, type TrainSequence } from "./engine.js";

/** Losses, sums and norms of gradients, and the resulting updates. */
export const learningChecks: readonly ConformanceCheck[] = [
  {
    name: "the loss and the metrics are those of the objective, summed over targets",
    run: (create) =>
      using(create, async (engine) => {
        const sequences = toy.map(({ ids }, i) => ({
          ids,
          targets: Array.from({ length: ids.length }, (_, j) => ((i + j) % 3 === 0 ? 0 : 1)),
          inputs: {
            old: Array.from({ length: ids.length }, (_, j) => -3 - (j % 4) * 0.2),
            advantage: Array.from({ length: ids.length }, (_, j) => (i - 4) * 0.5 + j * 0.01),
            limit: Array.from({ length: ids.length }, () => 0.5),
          },
        }));
        const result = await engine.forwardBackward(sequences, clipped);
        await engine.discardGradients();
        let loss = 0;
        let ratio = 0;
        sequences.forEach(({ ids, targets, inputs }, i) => {
          for (let j = 1; j < ids.length; j++) {
            if (targets[j] === 0) continue;
            const token = evaluateObjective(clipped, {
              quantities: { logprob: [result.logprobs[i]![j]!] },
              inputs: Object.fromEntries(
                Object.entries(inputs).map(([name, values]) => [name, [values[j]!]]),
              ),
              count: 1,
            });
            loss += token.loss;
            ratio += token.metrics.ratio!;
          }
        });
        close([result.loss, result.metrics.ratio!], [loss, ratio], 1e-3);
      }),
  },
  {
    name: "gradients of parts add up to the gradient of the whole",
    run: async (create) => {
      const after = async (parts: readonly (readonly TrainSequence[])[]) =>
        using(create, async (engine) => {
          for (const part of parts) await engine.forwardBackward(part, crossEntropy);
          const { gradNorm } = await engine.optimStep({ learningRate: 1e-2, eps: 1e-4 });
          return { gradNorm, logprobs: await scores(engine, Array.from(toy[0]!.ids)) };
        });
      const whole = await after([toy]);
      const parts = await after([toy.slice(0, 2), toy.slice(2, 7), toy.slice(7)]);
      close([parts.gradNorm], [whole.gradNorm], 1e-5 * whole.gradNorm);
      close(parts.logprobs, whole.logprobs, 1e-4);
    },
  },
  {
    name: "discarding gradients returns their norm and changes nothing",
    run: (create) =>
      using(create, async (engine) => {
        const before = await scores(engine, [1, 2, 3]);
        await engine.forwardBackward(toy, crossEntropy);
        const { gradNorm } = await engine.discardGradients();
        assert.deepEqual(await scores(engine, [1, 2, 3]), before);
        await assert.rejects(engine.optimStep({ learningRate: 1 }), EngineError);
        await engine.forwardBackward(toy, crossEntropy);
        const applied = await engine.optimStep({ learningRate: 1e-3 });
        close([applied.gradNorm], [gradNorm], 1e-6 * gradNorm);
      }),
  },
  {
    name: "an objective marked sparse has the same gradients, even if no target is left",
    run: (create) =>
      using(create, async (engine) => {
        const { entropies } = engine.capabilities;
        const objective = entropies
          ? sumObjectives(crossEntropy, { loss: mul(input("bonus"), entropy), metrics: {} })
          : crossEntropy;
        const weighted = (weight: (i: number, j: number) => number) =>
          toy.map(({ ids }, i) => {
            const inputs = {
              weight: Array.from(ids, (_, j) => weight(i, j)),
              // Also if the other weight is 0.
              bonus: Array.from(ids, (_, j) => weight(i + 1, j)),
            };
            return { ids, inputs: entropies ? inputs : { weight: inputs.weight } };
          });
        // In turn, all tokens of a sequence, the last of every three, and none of them have a
        // weight.
        const some = weighted((i, j) => (i % 3 < 1 || (i % 3 < 2 && j % 3 > 1) ? 0.1 : 0));
        const none = weighted(() => 0);
        const pass = async (sequences: readonly TrainSequence[], sparse: boolean) => {
          const { loss } = await engine.forwardBackward(sequences, { ...objective, sparse });
          // With such a large eps the update follows the gradient itself, not its sign.
          const { gradNorm } = await engine.optimStep({ learningRate: 1, eps: 1 });
          const scored = await engine.forward(toy);
          return [loss, gradNorm, ...scored.flatMap(({ logprobs }) => Array.from(logprobs))];
        };
        await inFolder(async (folder) => {
          await engine.save(folder);
          for (const sequences of [some, none]) {
            await engine.load(folder);
            const dense = await pass(sequences, false);
            await engine.load(folder);
            close(await pass(sequences, true), dense, 1e-5);
          }
        });
      }),
  },
  {
    name: "training memorises a toy text",
    run: (create) =>
      using(create, async (engine) => {
        const text = toySequences(2, () => 24);
        const first = (await engine.forwardBackward(text, crossEntropy)).loss;
        await engine.discardGradients();
        const last = await learn(engine, text, 100);
        assert.ok(last < 0.1 && first > 2, `the loss went from ${first} to ${last}`);
        const [samples] = await engine.sample([
          { prompt: Array.from(text[0]!.ids).slice(0, 4), maxTokens: 12, seed: 0, temperature: 0 },
        ]);
        assert.deepEqual(samples![0]!.tokens, Array.from(text[0]!.ids).slice(4, 16));
      }),
  },
  {
    name: "a gradient that is not finite is rejected, and the error names its tensor",
    run: (create) =>
      using(create, async (engine) => {
        const before = await scores(engine, [1, 2, 3]);
        // A finite loss whose derivative is not: huge × tiny, differentiated on its own.
        const spike: Objective = {
          loss: mul(mul(logprob, input("huge")), input("huge")),
          metrics: {},
        };
        const sequence = { ids: [1, 2], inputs: { huge: [0, 3e18] } };
        await engine.forwardBackward([sequence], spike);
        await assert.rejects(
          engine.optimStep({ learningRate: 1e-3 }),
          (error) =>
            error instanceof EngineError && /gradient of \S+ is not finite/.test(error.message),
        );
        assert.deepEqual(await scores(engine, [1, 2, 3]), before);
        await learn(engine, toy, 1);
      }),
  },
];

/**
 * What every engine must do, as plain functions that throw: usable by any engine and any test runner.
 *
 * The engine under test has at least 32 tokens and a context of at least 64, and fresh weights from a
 * seed; each check gets engines of its own.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
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
  clipped,
  close,
  crossEntropy,
  inFolder,
  learn,
  scores,
  toy,
  toySequences,
  using,
} from "./conformance-tools.js";
import { type Engine, EngineError, type TrainSequence } from "./engine.js";

/** One thing an engine must do. */
export interface ConformanceCheck {
  readonly name: string;
  /** Throws where the engine does not; `create` makes an engine with the same first weights each time. */
  run(create: () => Promise<Engine>): Promise<void>;
}

/** All checks. */
export const conformanceChecks: readonly ConformanceCheck[] = [
  {
    name: "sampled log-probabilities are those that forward gives, to 1e-4",
    run: (create) =>
      using(create, async (engine) => {
        // Sampled from before, so that an engine that keeps old weights for sampling is found out.
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
    name: "rows that end early do not disturb those that go on",
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
    name: "forward scores targets only, the same whatever else it is given, to 1e-5",
    run: (create) =>
      using(create, async (engine) => {
        const targets = toy.map(({ ids }) => Array.from({ length: ids.length }, (_, i) => i % 2));
        const sequences = toy.map(({ ids }, i) => ({ ids, targets: targets[i]! }));
        const together = await engine.forward(sequences, { entropies: true });
        for (const [i, sequence] of sequences.entries()) {
          const all = await scores(engine, Array.from(sequence.ids));
          assert.equal(all[0], 0);
          close(
            together[i]!.logprobs,
            all.map((x, j) => x * targets[i]![j]!),
            1e-5,
          );
          together[i]!.entropies!.forEach((entropy, j) => {
            const most = Math.log(engine.capabilities.vocabularySize) + 1e-4;
            assert.ok(targets[i]![j] ? entropy > 0 && entropy <= most : entropy === 0);
          });
        }
      }),
  },
  {
    name: "appending an observation leaves the action's log-probabilities unchanged",
    run: (create) =>
      using(create, async (engine) => {
        await learn(engine, toy, 2);
        const action = [1, 2, 3, 4, 5, 6, 7, 8];
        const longer = [...action, 20, 21, 22, 23];
        const filling = Array.from({ length: 60 }, (_, i) => i % 32);
        const isAction = (ids: readonly number[]) => ids.map((_, i) => (i >= 4 && i < 8 ? 1 : 0));
        const inBatch = async (ids: readonly number[]) => {
          const [result] = await engine.forward([
            { ids, targets: isAction(ids) },
            { ids: filling },
          ]);
          return result!.logprobs.subarray(0, action.length);
        };
        // Beside so long a neighbour the batch has the same shape with and without the observation.
        assert.deepEqual(await inBatch(longer), await inBatch(action));
        close((await scores(engine, longer)).subarray(0, 8), await scores(engine, action), 1e-5);
      }),
  },
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
    name: "discarded gradients tell their norm and change nothing",
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
    name: "an objective that says it is sparse has the same gradients, also where none is left",
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
              // Also where the other weight is 0.
              bonus: Array.from(ids, (_, j) => weight(i + 1, j)),
            };
            return { ids, inputs: entropies ? inputs : { weight: inputs.weight } };
          });
        // In turn all tokens of a sequence, the last of every three, and none has a weight.
        const some = weighted((i, j) => (i % 3 < 1 || (i % 3 < 2 && j % 3 > 1) ? 0.1 : 0));
        const none = weighted(() => 0);
        const pass = async (sequences: readonly TrainSequence[], sparse: boolean) => {
          const { loss } = await engine.forwardBackward(sequences, { ...objective, sparse });
          // So large an eps makes the step follow the gradient itself, and not its sign.
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
    name: "training learns a toy text by heart",
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
    name: "the reference stays as it was when the policy moves on",
    run: (create) =>
      using(create, async (engine) => {
        const ids = Array.from(toy[0]!.ids);
        await assert.rejects(engine.forward([{ ids }], { weights: "reference" }), EngineError);
        const before = await scores(engine, ids);
        await engine.snapshotReference();
        await learn(engine, toy, 2);
        const [reference] = await engine.forward([{ ids }], { weights: "reference" });
        assert.deepEqual(reference!.logprobs, before);
        assert.notDeepEqual(await scores(engine, ids), before);
      }),
  },
  {
    name: "a saved and loaded engine goes on as if nothing had happened",
    run: (create) =>
      inFolder((folder) =>
        using(create, async (engine) => {
          await learn(engine, toy, 3);
          await engine.save(folder);
          await using(create, async (other) => {
            await other.load(folder);
            const losses = [await learn(engine, toy, 3), await learn(other, toy, 3)];
            assert.equal(losses[1], losses[0]);
          });
          await engine.save(folder, { optimizer: false });
          await assert.rejects(engine.load(join(folder, "absent")), EngineError);
        }),
      ),
  },
  {
    name: "what makes no sense is refused with a reason, and changes nothing",
    run: (create) =>
      using(create, async (engine) => {
        const before = await scores(engine, [1, 2, 3]);
        const { vocabularySize, maxContext } = engine.capabilities;
        const long = new Array(maxContext + 1).fill(1);
        const refused = async (work: Promise<unknown>, reason: RegExp) =>
          assert.rejects(
            work,
            (error) => error instanceof EngineError && reason.test(error.message),
          );
        for (const id of [-1, vocabularySize, 1.5, Number.NaN])
          await refused(engine.forward([{ ids: [1] }, { ids: [1, id] }]), /sequence 1: token 1/);
        await refused(engine.forward([{ ids: [] }]), /sequence 0 is empty/);
        await refused(engine.forward([{ ids: long }]), /context/);
        await refused(engine.forward([{ ids: [1, 2], targets: [1] }]), /target/);
        await refused(engine.sample([{ prompt: [], maxTokens: 1, seed: 0 }]), /empty/);
        await refused(engine.sample([{ prompt: [1], maxTokens: maxContext, seed: 0 }]), /context/);
        await refused(engine.sample([{ prompt: [1], maxTokens: 0, seed: 0 }]), /maxTokens/);
        await refused(
          engine.forwardBackward([{ ids: [1, 2], inputs: {} }], crossEntropy),
          /weight/,
        );
        await refused(
          engine.forwardBackward([{ ids: [1, 2], inputs: { weight: [1] } }], crossEntropy),
          /weight/,
        );
        const broken = { ids: [1, 2, 3], inputs: { weight: [1, Number.NaN, 1] } };
        await refused(engine.forwardBackward([broken], crossEntropy), /token 1 of sequence 0/);
        await engine.forwardBackward(toy, crossEntropy);
        await refused(engine.optimStep({ learningRate: Number.NaN }), /learningRate/);
        assert.deepEqual(await scores(engine, [1, 2, 3]), before);
        await engine.optimStep({ learningRate: 1e-3 });
      }),
  },
  {
    name: "a gradient that is not finite is refused, and names its tensor",
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

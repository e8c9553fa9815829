/**
 * What every engine must do, as plain functions that throw: usable with any engine and any test
 * runner.
 *
 * The engine under test has a vocabulary of at least 32 tokens, small enough to score each of them,
 * a context of at least 64, and fresh weights from a seed. Each check creates its own engines.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { isWhole } from "../dose-testing.js";
import { constraintChecks } from "./conformance-constraints-testing.js";
import { learningChecks } from "./conformance-learning-testing.js";
import { samplingChecks } from "./conformance-sampling-testing.js";
import { temperatureChecks } from "./conformance-temperatures-testing.js";
import {
  type ConformanceCheck,
  close,
  crossEntropy,
  inFolder,
  learn,
  scores,
  toy,
  using,
} from "./conformance-tools-testing.js";
import { EngineError } from "./engine.js";

/** Scores, the reference, checkpoints, rejected calls. */
const generalChecks: readonly ConformanceCheck[] = [
  {
    name: "forward scores targets only, and the same in any batch, to 1e-5",
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
        // With such a long neighbour, the batch has the same shape with and without the
        // observation.
        assert.deepEqual(await inBatch(longer), await inBatch(action));
        close((await scores(engine, longer)).subarray(0, 8), await scores(engine, action), 1e-5);
      }),
  },
  {
    name: "the reference does not change when the policy does",
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
    name: "a saved and loaded engine continues as if nothing had happened",
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
    name: "invalid calls are rejected with a reason, and change nothing",
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
];

/** All checks. */
export const conformanceChecks: readonly ConformanceCheck[] = [
  ...samplingChecks,
  ...generalChecks,
  ...learningChecks,
  ...temperatureChecks,
  ...constraintChecks,
];

/** Of another road to the same model: without the checks of the model itself, except at night. */
export const roadChecks: readonly ConformanceCheck[] = conformanceChecks.filter(
  ({ name }) => isWhole || !/memorises|draws follow|sparse|rows that end|batch, to 1e-5/.test(name),
);

/** A prefix shared by sequences is computed once, and gives what computing each alone gives. */
import type { TrainSequence } from "@pawl/core/engine/engine.js";
import type { Objective } from "@pawl/core/objectives/expression.js";
import { add, entropy, input, logprob, mul, neg, value } from "@pawl/core/objectives/expression.js";
import { createRandom } from "@pawl/core/random.js";
import {
  initialAdapter,
  LORA_TARGETS,
  type LoraOptions,
  trainedSpecs,
} from "@pawl/models/weights/lora.js";
import type { ModelConfig } from "@pawl/models/weights/model-config.js";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { flatTensors } from "./flat-tensors.js";
import { initialWeights } from "./init.js";
import { createMoments, createWeightLearner } from "./learner.js";
import { createModelWeights } from "./model-weights.js";
import { lengthToLastTarget } from "./packed-arrays.js";
import { packPrefixes } from "./prefix-packing.js";
import { createReplica } from "./replica.js";
import { createSessions } from "./sessions.js";

const config: ModelConfig = {
  vocabularySize: 40,
  hiddenSize: 16,
  layers: 3,
  heads: 4,
  kvHeads: 2,
  headSize: 4,
  mlpSize: 24,
  maxContext: 256,
  ropeTheta: 10_000,
  normEps: 1e-6,
  tiedEmbeddings: true,
  qkvBias: false,
};
const lora: LoraOptions = { rank: 4, alpha: 8, targets: LORA_TARGETS };

/** Groups that share a prompt, some of whose answers begin alike, and a sequence by itself. */
function groups(seed: number): readonly TrainSequence[] {
  const random = createRandom(seed);
  const draw = (count: number) => Array.from({ length: count }, () => random.int(40));
  const sequences: (readonly [readonly number[], number])[] = [
    [draw(9), 3],
    [draw(2), 1],
  ];
  for (let group = 0; group < 3; group++) {
    const prompt = draw(30 + random.int(20));
    const first = draw(3);
    for (let answer = 0; answer < 4; answer++)
      sequences.push([
        [...prompt, ...(answer % 2 === 0 ? first : []), ...draw(1 + random.int(6))],
        prompt.length,
      ]);
  }
  return sequences.map(([ids, prompt], which) => ({
    ids,
    // Observations between actions are no targets, and some end a sequence.
    targets: ids.map((_, i) => (i >= prompt && (i + which) % 4 !== 0 ? 1 : 0)),
    inputs: { weight: ids.map(() => random.next() - 0.3) },
  }));
}

async function learnerOf(model: ModelConfig, sharesPrefixes: boolean, adapters?: LoraOptions) {
  const sessions = createSessions(1);
  const trained = flatTensors(trainedSpecs(model, true, adapters));
  const base = new Map<string, Float32Array>();
  const random = createRandom(5);
  const all = [
    ...initialWeights(model, 1),
    ...(adapters ? initialAdapter(model, adapters, 1) : []),
  ];
  for (const [name, data] of all)
    if (trained.tensors.has(name)) trained.tensors.get(name)!.set(data);
    else base.set(name, data);
  // New adapters and value heads are zero, and then pass nothing on.
  for (const data of trained.tensors.values())
    if (data.every((x) => x === 0)) data.set(data.map(() => 0.2 * random.normal()));
  const weights = createModelWeights(model, trained, sessions, {
    frozen: adapters && { base, lora: adapters },
  });
  const replica = createReplica({ config: model, replicas: 1, lora: adapters }, sessions);
  return createWeightLearner({
    ...{ config: model, lora: adapters, weights, sessions, sharesPrefixes },
    moments: createMoments(trainedSpecs(model, true, adapters)),
    replicas: [replica],
  });
}

const objective: Objective = {
  loss: add(mul(neg(logprob), input("weight")), add(mul(entropy, 0.1), mul(value, 0.2))),
  metrics: {},
};

const near = (actual: ArrayLike<number>, expected: ArrayLike<number>) => {
  const largest = Math.max(1, ...Array.from(expected, Math.abs));
  expect(actual.length).toBe(expected.length);
  for (let i = 0; i < actual.length; i++)
    expect(Math.abs(actual[i]! - expected[i]!) / largest).toBeLessThan(2e-5);
};

describe("learning with shared prefixes", () => {
  const cases: Readonly<Record<string, readonly [Partial<ModelConfig>, LoraOptions?, object?]>> = {
    "all weights": [{}],
    adapters: [{}, lora],
    "adapters, of which many targets have no gradient": [{}, lora, { sparse: true }],
    "a sliding window": [{ slidingWindow: { size: 6, layers: [0, 2] } }],
    "norms of queries, biases and a head of its own": [
      { qkNorms: true, qkvBias: true, tiedEmbeddings: false },
      lora,
    ],
  };
  for (const [name, [changes, adapters, how]] of Object.entries(cases))
    it(`gives the same numbers as without: ${name}`, async () => {
      const model = { ...config, ...changes };
      const given = groups(3).map((one) => ({
        ...one,
        temperatures: Array.from(one.ids, (_, i) => 1 + (i % 3) / 4),
      }));
      const [alone, shared] = [
        await learnerOf(model, false, adapters),
        await learnerOf(model, true, adapters),
      ];
      const weighed = { ...objective, ...how };
      const [expected, actual] = [
        await alone.forwardBackward(given, weighed),
        await shared.forwardBackward(given, weighed),
      ];
      near([actual.loss], [expected.loss]);
      for (const [i, one] of actual.logprobs.entries()) near(one, expected.logprobs[i]!);
      expect(shared.gradients.size).toBe(alone.gradients.size);
      for (const [tensor, sum] of alone.gradients) near(shared.gradients.get(tensor)!, sum);
    });
});

describe("packing with shared prefixes", () => {
  const options = {
    tokensPerMicroBatch: 256,
    attentionCost: 0.001,
    microBatchCost: 8,
    mostTargets: 64,
  };

  it("computes every sequence once, in rows that begin alike and fit", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 1e6 }), (seed) => {
        const sequences = groups(seed);
        const microBatches = packPrefixes(sequences, options);
        const placed = microBatches.flatMap((one) => one.sequences);
        expect(microBatches.some((one) => one.shared!.each > 1)).toBe(true);
        const learnt = sequences.flatMap((one, i) => (lengthToLastTarget(one) > 0 ? [i] : []));
        expect([...placed].sort((a, b) => a - b)).toEqual(learnt);
        for (const { length, sequences: inside, shared } of microBatches) {
          const { prefixes, each, suffix } = shared!;
          expect(length * prefixes.length).toBeLessThanOrEqual(256);
          inside.forEach((sequence, at) => {
            const prefix = prefixes[Math.floor(at / each)]!;
            const first = inside[at - (at % each)]!;
            const head = (one: number) => Array.from(sequences[one]!.ids).slice(0, prefix);
            expect(head(sequence)).toEqual(head(first));
            const own = lengthToLastTarget(sequences[sequence]!) - prefix;
            expect(own).toBeGreaterThan(0);
            expect(own).toBeLessThanOrEqual(suffix);
          });
        }
      }),
      { numRuns: 60 },
    );
  });

  it("computes the prompt of a group once", () => {
    const prompt = Array.from({ length: 80 }, (_, i) => i);
    const sequences = Array.from({ length: 8 }, (_, answer) => {
      const ids = [...prompt, answer, 1, 2, 3];
      return { ids, targets: ids.map((_, i) => (i >= 80 ? 1 : 0)) };
    });
    const [one, ...more] = packPrefixes(sequences, options);
    expect(more).toEqual([]);
    expect(one!.shared).toEqual({ prefixes: [80], prefix: 80, suffix: 3, each: 8 });
  });
});

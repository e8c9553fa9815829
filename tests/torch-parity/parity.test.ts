/** The whole model against PyTorch and transformers: values, and the gradient of every tensor. */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { flatTensors } from "../../src/engine/embedded/flat-tensors.js";
import { createLearner, createMoments } from "../../src/engine/embedded/learner.js";
import { createModelWeights } from "../../src/engine/embedded/model-weights.js";
import { createReplica } from "../../src/engine/embedded/replica.js";
import { createSessions } from "../../src/engine/embedded/sessions.js";
import type { TrainSequence } from "../../src/engine/engine.js";
import type { ModelConfig } from "../../src/engine/weights/model-config.js";
import { tensorSpecs } from "../../src/engine/weights/tensor-names.js";
import {
  add,
  entropy,
  exp,
  input,
  logprob,
  min,
  mul,
  neg,
  type Objective,
  sub,
  value,
} from "../../src/objectives/expression.js";

interface Reference {
  readonly loss: number;
  readonly logprobs: readonly (readonly number[])[];
  readonly entropies: readonly (readonly number[])[];
  readonly values: readonly (readonly number[])[];
  readonly gradients: Readonly<
    Record<string, { readonly norm: number; readonly numbers: readonly number[] }>
  >;
}

const { models } = JSON.parse(readFileSync(new URL("./values.json", import.meta.url), "utf8")) as {
  readonly models: Readonly<Record<string, Reference>>;
};

const sizes = {
  vocabularySize: 29,
  hiddenSize: 24,
  mlpSize: 40,
  maxContext: 640,
  ropeTheta: 10_000,
  normEps: 1e-6,
};

const configs: Readonly<Record<string, ModelConfig>> = {
  llama: {
    ...sizes,
    layers: 3,
    heads: 4,
    kvHeads: 4,
    headSize: 6,
    tiedEmbeddings: true,
    qkvBias: false,
  },
  qwen2: {
    ...sizes,
    layers: 2,
    heads: 6,
    kvHeads: 2,
    headSize: 4,
    tiedEmbeddings: false,
    qkvBias: true,
  },
};

/** The weights of a tensor: the same numbers as in generate.py. */
function formula(name: string, count: number): Float32Array {
  const start = [...name].reduce((sum, c, i) => sum + c.charCodeAt(0) * (i + 1), 0) % 1000;
  const [scale, shift] = name.endsWith("norm.weight") ? [0.1, 1] : [0.25, 0];
  return Float32Array.from(
    { length: count },
    (_, i) => scale * Math.sin(start + 0.37 * i + 0.011 * i * (i % 7)) + shift,
  );
}

const weight = input("weight");
const miss = sub(value, weight);
const objective: Objective = {
  loss: add(
    neg(min(mul(exp(add(logprob, 3.4)), weight), 0.9)),
    mul(-0.3, entropy, weight),
    mul(0.2, miss, miss),
  ),
  metrics: {},
};

/** The sequences of each case: the same as in generate.py. */
const cases: Readonly<Record<string, readonly TrainSequence[]>> = {
  short: sequencesOf([19, 7, 12], false),
  long: sequencesOf([65, 130, 600], false),
  tempered: sequencesOf([19, 65, 12], true),
};

function sequencesOf(lengths: readonly number[], tempered: boolean): readonly TrainSequence[] {
  return lengths.map((length, s) => ({
    ids: Array.from({ length }, (_, i) => (5 * s + 3 * i + i * i) % 29),
    inputs: { weight: Array.from({ length }, (_, i) => 0.5 + 0.1 * ((s + i) % 5)) },
    ...(tempered && {
      temperatures: Array.from({ length }, (_, i) => 0.5 + 0.25 * ((s + i) % 4)),
    }),
  }));
}

/** About 64 numbers of each sequence are stored. */
function thinned(numbers: Float32Array): Float32Array {
  const step = Math.max(1, Math.floor(numbers.length / 64));
  return numbers.filter((_, i) => i % step === 0);
}

function largestDifference(actual: ArrayLike<number>, expected: ArrayLike<number>): number {
  expect(actual.length).toBe(expected.length);
  return Math.max(...Array.from(expected, (x, i) => Math.abs(actual[i]! - x)));
}

describe.each(Object.entries(models))("%s", (label, reference) => {
  const [name, which] = label.split(", ") as [string, string];
  const sequences = cases[which]!;

  it("has PyTorch's log-probabilities, entropies, values, loss and gradients", async () => {
    const config = configs[name]!;
    const formulas = new Map(
      tensorSpecs(config).map((spec) => [
        spec.name,
        formula(
          spec.name,
          spec.shape.reduce((product, size) => product * size, 1),
        ),
      ]),
    );
    const sessions = createSessions(2);
    const parameters = flatTensors(tensorSpecs(config));
    for (const [tensor, data] of formulas) parameters.tensors.get(tensor)!.set(data);
    const weights = createModelWeights(config, parameters, sessions);
    const learner = createLearner({
      config,
      weights,
      moments: createMoments(tensorSpecs(config)),
      sessions,
      replicas: [createReplica({ config, replicas: 1 }, sessions)],
    });
    const policy = await weights.policy(0);
    const scored = await learner.forward(sequences, policy, { entropies: true, values: true });
    for (const [i, result] of scored.entries()) {
      expect(largestDifference(thinned(result.logprobs), reference.logprobs[i]!)).toBeLessThan(
        1e-5,
      );
      expect(largestDifference(thinned(result.entropies!), reference.entropies[i]!)).toBeLessThan(
        1e-5,
      );
      expect(largestDifference(thinned(result.values!), reference.values[i]!)).toBeLessThan(1e-5);
    }
    const { loss } = await learner.forwardBackward(sequences, objective);
    expect(Math.abs(loss / reference.loss - 1)).toBeLessThan(1e-5);
    expect([...learner.gradients.keys()].sort()).toEqual(Object.keys(reference.gradients).sort());
    for (const [tensor, expected] of Object.entries(reference.gradients)) {
      const gradient = learner.gradients.get(tensor)!;
      const step = Math.max(1, Math.floor(gradient.length / 12));
      const chosen = gradient.filter((_, i) => i % step === 0);
      expect(chosen.length, tensor).toBe(expected.numbers.length);
      expect(largestDifference(chosen, expected.numbers), tensor).toBeLessThan(
        2e-6 * (1 + expected.norm),
      );
      expect(Math.abs(Math.hypot(...gradient) / expected.norm - 1), tensor).toBeLessThan(1e-5);
    }
    await sessions.dispose();
  });
});

/** The whole model against PyTorch and transformers: values, and the gradient of every tensor. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { some } from "@pawl/core/dose-testing.js";
import type { TrainSequence } from "@pawl/core/engine/engine.js";
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
} from "@pawl/core/objectives/expression.js";
import { createEmbeddedEngine } from "@pawl/engine-cpu/embedded-engine.js";
import { flatTensors } from "@pawl/engine-cpu/flat-tensors.js";
import { createMoments, createWeightLearner } from "@pawl/engine-cpu/learner.js";
import { createModelWeights } from "@pawl/engine-cpu/model-weights.js";
import { createReplica } from "@pawl/engine-cpu/replica.js";
import { createSessions } from "@pawl/engine-cpu/sessions.js";
import { writeCheckpoint } from "@pawl/models/weights/checkpoint.js";
import { parseModelConfig } from "@pawl/models/weights/config-json.js";
import { tensorSpecs } from "@pawl/models/weights/tensor-names.js";
import { afterAll, describe, expect, it } from "vitest";

interface Reference {
  readonly loss: number;
  readonly logprobs: readonly (readonly number[])[];
  readonly entropies: readonly (readonly number[])[];
  readonly values: readonly (readonly number[])[];
  readonly gradients: Readonly<
    Record<string, { readonly norm: number; readonly numbers: readonly number[] }>
  >;
}

const { configs, models } = JSON.parse(
  readFileSync(new URL("./values.json", import.meta.url), "utf8"),
) as {
  /** What transformers writes as config.json. */
  readonly configs: Readonly<Record<string, unknown>>;
  readonly models: Readonly<Record<string, Reference>>;
};

/** The weights of a tensor: the same numbers as in generate.py; norms are around `one`. */
function formula(name: string, count: number, one: number): Float32Array {
  const start = [...name].reduce((sum, c, i) => sum + c.charCodeAt(0) * (i + 1), 0) % 1000;
  const [scale, shift] = name.endsWith("norm.weight") ? [0.1, one] : [0.25, 0];
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

/** A model with the weights of the formula. */
function modelOf(name: string) {
  const config = parseModelConfig(configs[name], name);
  const one = config.normsPlusOne ? 0 : 1;
  const formulas = new Map(
    tensorSpecs(config).map((spec) => {
      const count = spec.shape.reduce((product, size) => product * size, 1);
      return [spec.name, formula(spec.name, count, one)];
    }),
  );
  return { config, formulas };
}

/** Every architecture; the other half, of their variants, at night. */
const compared = some(Object.entries(models), 2);

describe.each(compared)("%s", (label, reference) => {
  const [, name, which] = /^(.*), (\w+)$/.exec(label) as unknown as [string, string, string];
  const sequences = cases[which]!;

  it("has PyTorch's log-probabilities, entropies, values, loss and gradients", async () => {
    const { config, formulas } = modelOf(name);
    // Threads that share an operator wait for each other in a busy loop: one case of all is enough.
    const sessions = createSessions(label === "llama, short" ? 2 : 1);
    const parameters = flatTensors(tensorSpecs(config));
    for (const [tensor, data] of formulas) parameters.tensors.get(tensor)!.set(data);
    const weights = createModelWeights(config, parameters, sessions);
    const learner = createWeightLearner({
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

const folder = mkdtempSync(join(tmpdir(), "pawl-parity-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

it.each(some(Object.keys(configs)))(
  "samples what it scores, and continues it: %s",
  async (name) => {
    const { config, formulas } = modelOf(name);
    const tensors = tensorSpecs(config).flatMap(({ name: tensor, shape, optional }) =>
      optional ? [] : [[tensor, { shape, data: formulas.get(tensor)! }] as const],
    );
    await writeCheckpoint(folder, config, new Map(tensors));
    const engine = await createEmbeddedEngine({ model: { folder }, threads: 1 });
    // Shorter and longer than the windows; samples of one prompt share its cache.
    let prompts = cases.long!.map(({ ids }, i) => Array.from(ids).slice(0, [18, 71, 40][i]));
    for (const continued of [false, true, true]) {
      const settings = { maxTokens: 14, temperature: 0.7, continued, count: continued ? 1 : 2 };
      const groups = await engine.sample(
        prompts.map((prompt, seed) => ({ ...settings, prompt, seed })),
      );
      for (const [i, group] of groups.entries())
        for (const { tokens, logprobs } of group) {
          const prompt = prompts[i]!;
          const [scored] = await engine.forward([{ ids: [...prompt, ...tokens] }]);
          const found = scored!.logprobs.subarray(prompt.length);
          expect(largestDifference(logprobs, found)).toBeLessThan(1e-4);
        }
      if (continued)
        prompts = prompts.map((prompt, i) => [...prompt, ...groups[i]![0]!.tokens, 3, 4, 5 + i]);
    }
    await engine.dispose();
  },
);

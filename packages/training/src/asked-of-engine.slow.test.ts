/**
 * What training and evaluation ask of an engine: which temperatures, which tokens, which weights.
 */

import type { Engine, TrainSequence } from "@pawl/core/engine/engine.js";
import { recording } from "@pawl/core/engine/recording-testing.js";
import type { Env, Environment } from "@pawl/core/envs/env.js";
import { openEnvironment } from "@pawl/core/envs/open.js";
import { findEnvKind } from "@pawl/core/envs/registry.js";
import { promptStyle } from "@pawl/core/text/prompt.js";
import type { Tokenizer } from "@pawl/core/text/tokenizer.js";
import { buildTokenizer } from "@pawl/core/text/tokenizer-builder.js";
import { evaluateSplits } from "@pawl/core/train/evaluate.js";
import { trainRl } from "@pawl/core/train/rl.js";
import { createEmbeddedEngine } from "@pawl/engine-cpu/embedded-engine.js";
import { rwmlConfig } from "@pawl/worldmodel/rwml/config.js";
import { worldQuestion } from "@pawl/worldmodel/rwml/question.js";
import { episode } from "@pawl/worldmodel/rwml/testing.js";
import { tripletsOf } from "@pawl/worldmodel/rwml/triplet.js";
import { type FinishedRwmlUpdate, trainRwml } from "@pawl/worldmodel/rwml/updates.js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { tinyConfig } from "./testing.js";
import { worldTexts } from "./world-text.js";

/** Weights move far in one update, so that old and new ones cannot be confused. */
const config = tinyConfig({
  updates: 2,
  groups: 2,
  groupSize: 3,
  temperature: 0.7,
  minibatch: 1000,
  objective: { kl: 0.01, entropy: 0.01 },
  optimizer: { learningRate: 0.02, warmup: 0 },
  paw: { loss: "ce", lambda: 1, alpha: 1 },
  gradients: { every: 1 },
  evaluation: { tasks: 2, splits: ["valid_seen"] },
});
const household = openEnvironment({ ...config.env, name: "household" });
const style = promptStyle(household.prompt, config.prompt);
/** Every other episode is rewarded, so that there is something to learn. */
const environment: Environment = {
  ...household,
  create() {
    const env = household.create() as Env;
    const reward = (created++ % 2) * 10;
    const step: Env["step"] = (action) => ({ ...env.step(action), reward });
    return Object.setPrototypeOf({ step }, env) as Env;
  },
};
let created = 0;
let tokenizer: Tokenizer;
/** Its weights stay the ones that every test starts with. */
let start: Engine;

async function fresh(): Promise<Engine> {
  return createEmbeddedEngine({
    model: { preset: "tiny", vocabularySize: tokenizer.vocabularySize, maxContext: 256 },
    threads: 1,
  });
}

beforeAll(async () => {
  tokenizer = buildTokenizer([
    ...(await worldTexts(household, style)),
    ...[episode.goal, episode.firstObservation],
    ...episode.steps.flatMap(({ action, observation }) => [action, observation]),
  ]);
  start = await fresh();
});
afterAll(() => start.dispose());

/** Counts the tokens that have a weight of that kind. */
function at(
  sequences: readonly TrainSequence[],
  weight: "policyWeight" | "worldWeight",
  numbers: (sequence: TrainSequence, i: number) => ArrayLike<number> | undefined,
): number[] {
  return sequences.flatMap((sequence, i) =>
    Array.from(sequence.inputs[weight]!).flatMap((w, token) =>
      w === 0 ? [] : [numbers(sequence, i)?.[token] ?? 1],
    ),
  );
}
const largestDifference = (a: readonly number[], b: readonly number[]) => {
  expect(a.length).toBe(b.length);
  expect(a.length).toBeGreaterThan(10);
  return Math.max(...a.map((x, i) => Math.abs(x - b[i]!)));
};

describe("RL at a temperature of 0.7", () => {
  let recorded: ReturnType<typeof recording>;
  /**
   * The last pass of each update is the one that is learnt from; the earlier ones measure
   * gradients.
   */
  const learnt = () => recorded.asked.passes.filter((_, i) => i % 4 === 3);
  beforeAll(async () => {
    created = 0;
    recorded = recording(await fresh());
    await recorded.engine.snapshotReference();
    const done = async (): Promise<void> => undefined;
    await trainRl(
      {
        ...{ engine: recorded.engine, environment, tokenizer, style, onEpisodes: done },
        ...{ firstUpdate: 0, optimizerSteps: 0, onUpdate: done },
      },
      config,
    );
  });
  afterAll(() => recorded.engine.dispose());

  it("samples, scores, measures and learns at it, and predicts observations at 1", () => {
    const { samples, forwards, passes } = recorded.asked;
    expect(samples.length).toBeGreaterThan(0);
    expect(new Set(samples.map(({ temperature }) => temperature))).toEqual(new Set([0.7]));
    for (const { sequences } of forwards)
      for (const { targets, temperatures } of sequences)
        expect(Array.from(temperatures!, (t) => t.toFixed(3))).toEqual(
          Array.from(targets!, (target) => (target === 0 ? "1.000" : "0.700")),
        );
    expect(passes).toHaveLength(2 * 4);
    for (const { sequences } of passes) {
      const temperatures = (weight: "policyWeight" | "worldWeight") =>
        new Set(at(sequences, weight, (sequence) => sequence.temperatures));
      expect([...temperatures("policyWeight")].every((t) => t === Math.fround(0.7))).toBe(true);
      expect([...temperatures("worldWeight")].every((t) => t === 1)).toBe(true);
    }
    expect(at(learnt()[0]!.sequences, "worldWeight", () => [])).not.toEqual([]);
  });

  it("gives each action token the log-probability it was sampled with", () => {
    for (const { sequences, result } of learnt()) {
      const old = at(sequences, "policyWeight", ({ inputs }) => inputs.oldLogprob);
      const now = at(sequences, "policyWeight", (_, i) => result.logprobs[i]!);
      expect(largestDifference(old, now)).toBeLessThan(1e-4);
      // One token off, these values would differ.
      const shifted = at(sequences, "policyWeight", (_, i) => result.logprobs[i]!.subarray(1));
      expect(largestDifference(old, shifted)).toBeGreaterThan(0.01);
    }
  });

  it("stays near the frozen start, not near the current weights", async () => {
    const { forwards } = recorded.asked;
    expect(forwards.map(({ options }) => options.weights)).toEqual(["reference", "reference"]);
    const { sequences, result } = learnt()[1]!;
    const reference = at(sequences, "policyWeight", ({ inputs }) => inputs.referenceLogprob);
    const first = await start.forward(sequences);
    const frozen = at(sequences, "policyWeight", (_, i) => first[i]!.logprobs);
    const moved = at(sequences, "policyWeight", (_, i) => result.logprobs[i]!);
    expect(largestDifference(reference, frozen)).toBeLessThan(1e-4);
    expect(largestDifference(reference, moved)).toBeGreaterThan(0.1);
  });
});

describe("actions without log-probabilities at their temperature", () => {
  it("are scored again, at that temperature", async () => {
    created = 0;
    const { engine, asked } = recording(start);
    const untold: Engine = {
      ...engine,
      capabilities: start.capabilities,
      sample: async (requests) =>
        (await engine.sample(requests)).map((samples) =>
          samples.map(({ sampledLogprobs: _, ...sample }) => sample),
        ),
      // Other tests use these weights too.
      optimStep: () => engine.discardGradients(),
    };
    const done = async (): Promise<void> => undefined;
    await trainRl(
      {
        ...{ engine: untold, environment, tokenizer, style, onEpisodes: done, onUpdate: done },
        ...{ firstUpdate: 0, optimizerSteps: 0 },
      },
      { ...config, updates: 1, objective: { ...config.objective, kl: 0 } },
    );
    expect(asked.forwards).toHaveLength(1);
    const { sequences, result } = asked.passes.at(-1)!;
    const old = at(sequences, "policyWeight", ({ inputs }) => inputs.oldLogprob);
    const now = at(sequences, "policyWeight", (_, i) => result.logprobs[i]!);
    expect(largestDifference(old, now)).toBeLessThan(1e-4);
  });
});

describe("evaluation", () => {
  it("samples at its own temperature", async () => {
    for (const temperature of [0.25, 0]) {
      const { engine, asked } = recording(start);
      const evaluation = { ...config.evaluation, temperature };
      const model = { environment: household, style, tokenizer, engine };
      await evaluateSplits(model, { ...config, evaluation }, 0);
      expect(asked.samples.length).toBeGreaterThan(0);
      expect(new Set(asked.samples.map((request) => request.temperature))).toEqual(
        new Set([temperature]),
      );
    }
  });
});

describe("RWML", () => {
  /** Advantages by whether they belong to predictions, for a given weight of task rewards. */
  async function advantagesAt(weight: number) {
    created = 0;
    let rated = 0;
    const { engine, asked } = recording(start);
    const question = worldQuestion(tokenizer, style);
    let updates: readonly FinishedRwmlUpdate[] = [];
    const options = rwmlConfig(findEnvKind("household")).parse({
      ...{ env: config.env, prompt: config.prompt, model: { start: "nowhere" }, updates: 1 },
      ...{ triplets: 3, groupSize: 4, predictionTokens: 5, maxTokens: 6, stepLimit: 3 },
      ...{ temperature: 0.7, objective: { kl: 0.01, entropy: 0 }, minibatch: 1000 },
      task: { groups: 2, groupSize: 4, weight },
    });
    await trainRwml(
      {
        engine: { ...engine, capabilities: start.capabilities, optimStep: engine.discardGradients },
        ...{ environment, tokenizer, style, firstUpdate: 0, optimizerSteps: 0 },
        // Any text counts as an answer, and no two are the same.
        question: {
          ...question,
          read: (tokens) => ({ text: `answer ${tokens.join(" ")}`, response: "" }),
        },
        reward: {
          name: "in turn",
          rate: async (pairs) => ({ values: pairs.map(() => rated++ % 2), unreadable: 0 }),
        },
        pool: tripletsOf([episode]),
        onUpdate: async (update) => {
          updates = [...updates, update];
        },
      },
      options,
    );
    expect(new Set(asked.samples.map(({ temperature }) => temperature))).toEqual(new Set([0.7]));
    const keyOf = (ids: ArrayLike<number>) => Array.from(ids).join(" ");
    const predicted = new Set(
      updates[0]!.predictions.flatMap(({ episodes }) =>
        episodes.map(({ steps }) => keyOf(steps[0]!.sequence!.ids)),
      ),
    );
    const { sequences } = asked.passes.at(-1)!;
    for (const sequence of sequences)
      expect(
        at([sequence], "policyWeight", ({ temperatures }) => temperatures).every(
          (t) => t === Math.fround(0.7),
        ),
      ).toBe(true);
    const [predictions, actions] = [true, false].map((isPrediction) =>
      at(
        sequences.filter(({ ids }) => predicted.has(keyOf(ids)) === isPrediction),
        "policyWeight",
        ({ inputs }) => inputs.advantage,
      ),
    ) as [number[], number[]];
    return { predictions, actions };
  }

  it("weighs task rewards against predictions, and learns at the temperature", async () => {
    await start.snapshotReference();
    const [plain, heavy] = [await advantagesAt(1), await advantagesAt(2.5)];
    for (const advantages of [plain.predictions, plain.actions])
      expect(Math.max(...advantages.map(Math.abs))).toBeGreaterThan(0.5);
    expect(heavy.predictions).toEqual(plain.predictions);
    expect(
      largestDifference(
        heavy.actions,
        plain.actions.map((x) => 2.5 * x),
      ),
    ).toBeLessThan(1e-5);
  });
});

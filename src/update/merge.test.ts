import { expect, it } from "vitest";
import { createEmbeddedEngine } from "../engine/embedded/embedded-engine.js";
import type { TrainSequence } from "../engine/engine.js";
import { add, entropy, input, logprob, mul } from "../objectives/expression.js";
import { mergeContinuations, type StepSequence } from "./merge.js";

/** A step's tokens from the first target on. */
const sequence = (ids: number[], targets: number[], weight: number[]) => {
  const start = targets.indexOf(1);
  return {
    ids,
    start,
    targets: Uint8Array.from(targets.slice(start)),
    inputs: { weight: Float32Array.from(weight.slice(start)) },
  };
};

it("merges steps that continue one another, with the targets and inputs of each", () => {
  const merged = mergeContinuations([
    sequence([1, 2, 3, 4], [0, 0, 1, 1], [0, 0, 5, 6]),
    sequence([1, 2, 3, 4, 5, 6], [0, 0, 0, 0, 1, 1], [0, 0, 0, 0, 7, 8]),
    sequence([1, 2, 3, 4, 5, 6, 7], [0, 0, 0, 0, 0, 0, 1], [0, 0, 0, 0, 0, 0, 9]),
    sequence([1, 2, 9, 9, 9], [0, 0, 0, 0, 1], [0, 0, 0, 0, 1]),
  ]);
  expect(merged).toHaveLength(2);
  expect(merged[0]).toMatchObject({ ids: [1, 2, 3, 4, 5, 6, 7], steps: 3 });
  expect([...(merged[0]!.targets as Uint8Array)]).toEqual([0, 0, 1, 1, 1, 1, 1]);
  expect([...(merged[0]!.inputs.weight as Float32Array)]).toEqual([0, 0, 5, 6, 7, 8, 9]);
  expect(merged[1]).toMatchObject({ ids: [1, 2, 9, 9, 9], steps: 1 });
});

it("does not merge sequences that share a target or do not continue", () => {
  const first = sequence([1, 2, 3], [0, 0, 1], [0, 0, 1]);
  expect(
    mergeContinuations([first, sequence([1, 2, 3, 4], [0, 0, 1, 1], [0, 0, 2, 2])]),
  ).toHaveLength(2);
  expect(
    mergeContinuations([first, sequence([1, 2, 4, 4], [0, 0, 0, 1], [0, 0, 0, 2])]),
  ).toHaveLength(2);
  expect(mergeContinuations([first, first])).toHaveLength(2);
});

/**
 * An episode of three steps that continue one another, each action at its own temperature,
 * observations at 1.
 */
const tempered: readonly StepSequence[] = [0.6, 1, 1.5].map((temperature, t) => {
  const ids = Array.from({ length: 6 + 5 * t }, (_, i) => (7 * i + 3) % 30);
  // Two tokens of an action, then two of an observation; one token of the next prompt lies between.
  const temperatures = Float32Array.from([temperature, temperature, 1, 1]);
  return {
    ids,
    start: ids.length - 4,
    targets: new Uint8Array(4).fill(1),
    inputs: { weight: Float32Array.from([0.1, -0.2, 0.3, 0.1 * t]) },
    ...(temperature !== 1 && { temperatures }),
  };
});

it("keeps the temperature of each step's action, and 1 elsewhere", () => {
  const [merged, ...rest] = mergeContinuations(tempered);
  expect(rest).toEqual([]);
  const expected = new Float32Array(16).fill(1);
  expected.fill(0.6, 2, 4).fill(1.5, 12, 14);
  expect(Array.from(merged!.temperatures!)).toEqual(Array.from(expected));
  expect(mergeContinuations([tempered[1]!])[0]).not.toHaveProperty("temperatures");
});

it("merged, give the same log-probabilities, loss and gradient as step by step", async () => {
  const model = { preset: "tiny", vocabularySize: 32, maxContext: 32 } as const;
  const engine = await createEmbeddedEngine({ model, threads: 1 });
  const objective = {
    loss: mul(input("weight"), add(logprob, mul(0.5, entropy))),
    metrics: {},
  };
  const apart = tempered.map((step): TrainSequence => {
    const whole = <T extends Uint8Array | Float32Array>(into: T, values: T): T => {
      into.set(values, step.start);
      return into;
    };
    const { length } = step.ids;
    return {
      ids: step.ids,
      targets: whole(new Uint8Array(length), step.targets),
      inputs: { weight: whole(new Float32Array(length), step.inputs.weight!) },
      ...(step.temperatures && {
        temperatures: whole(new Float32Array(length).fill(1), step.temperatures),
      }),
    };
  });
  const pass = async (sequences: readonly TrainSequence[]) => {
    const { loss, logprobs } = await engine.forwardBackward(sequences, objective);
    const { gradNorm } = await engine.discardGradients();
    const learnt = logprobs.flatMap((numbers) => Array.from(numbers).filter((x) => x !== 0));
    return [loss, gradNorm, ...learnt];
  };
  const [one, three] = [await pass(mergeContinuations(tempered)), await pass(apart)];
  expect(one.length).toBe(2 + 12);
  one.forEach((x, i) => {
    expect(x).toBeCloseTo(three[i]!, 5);
  });
  const plain = await pass(apart.map(({ temperatures: _, ...sequence }) => sequence));
  expect(plain[1]).not.toBeCloseTo(one[1]!, 3);
  await engine.dispose();
});

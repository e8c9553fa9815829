/** What the conformance checks share: objectives, sequences to learn from, and comparisons that throw. */
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  exp,
  input,
  logprob,
  min,
  mul,
  neg,
  type Objective,
  sub,
} from "../objectives/expression.js";
import type { Engine, TrainSequence } from "./engine.js";

/** Plain language modelling, weighted. */
export const crossEntropy: Objective = {
  loss: mul(input("weight"), neg(logprob)),
  metrics: { logprobs: logprob },
};

/** A policy-gradient loss, to see that ratios and minima survive compilation. */
export const clipped: Objective = {
  loss: neg(min(mul(exp(sub(logprob, input("old"))), input("advantage")), input("limit"))),
  metrics: { ratio: exp(sub(logprob, input("old"))) },
};

/** Sequences of different lengths with some structure, so that there is something to learn. */
export function toySequences(
  count: number,
  length: (i: number) => number,
): readonly TrainSequence[] {
  return Array.from({ length: count }, (_, i) => {
    const ids = Array.from({ length: length(i) }, (__, j) => (3 + i * 5 + j * (1 + (i % 3))) % 32);
    return { ids, inputs: { weight: ids.map(() => 1 / (count * length(i))) } };
  });
}

/** The sequences most checks learn from. */
export const toy = toySequences(9, (i) => 9 + ((i * 7) % 20));

/** Some updates; returns the last loss. */
export async function learn(engine: Engine, sequences: readonly TrainSequence[], steps: number) {
  let loss = Number.NaN;
  for (let step = 0; step < steps; step++) {
    loss = (await engine.forwardBackward(sequences, crossEntropy)).loss;
    await engine.optimStep({ learningRate: 3e-3 });
  }
  return loss;
}

/** Throws where numbers differ by more than the tolerance. */
export function close(
  actual: ArrayLike<number>,
  expected: ArrayLike<number>,
  tolerance: number,
): void {
  assert.equal(actual.length, expected.length);
  for (let i = 0; i < actual.length; i++)
    assert.ok(
      Math.abs(actual[i]! - expected[i]!) <= tolerance,
      `entry ${i} is ${actual[i]}, expected ${expected[i]} to within ${tolerance}`,
    );
}

/** Log-probabilities of one sequence. */
export async function scores(engine: Engine, ids: readonly number[]): Promise<Float32Array> {
  return (await engine.forward([{ ids }]))[0]!.logprobs;
}

/** Works with an engine and disposes of it. */
export async function using<T>(
  create: () => Promise<Engine>,
  work: (engine: Engine) => Promise<T>,
): Promise<T> {
  const engine = await create();
  try {
    return await work(engine);
  } finally {
    await engine.dispose();
  }
}

/** Works in a temporary folder and removes it. */
export async function inFolder(work: (folder: string) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "pawl-conformance-"));
  try {
    await work(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

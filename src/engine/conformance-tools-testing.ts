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

/** One thing an engine must do. */
export interface ConformanceCheck {
  readonly name: string;
  /**
   * Throws if the engine does not; each call of `create` makes an engine with the same initial
   * weights.
   */
  run(create: () => Promise<Engine>): Promise<void>;
}

/** Plain language modelling, weighted. */
export const crossEntropy: Objective = {
  loss: mul(input("weight"), neg(logprob)),
  metrics: { logprobs: logprob },
};

/** A policy-gradient loss, to check that ratios and minima survive compilation. */
export const clipped: Objective = {
  loss: neg(min(mul(exp(sub(logprob, input("old"))), input("advantage")), input("limit"))),
  metrics: { ratio: exp(sub(logprob, input("old"))) },
};

/** Sequences of different lengths with some structure to learn. */
export function toySequences(
  count: number,
  length: (i: number) => number,
): readonly TrainSequence[] {
  return Array.from({ length: count }, (_, i) => {
    const ids = Array.from({ length: length(i) }, (__, j) => (3 + i * 5 + j * (1 + (i % 3))) % 32);
    return { ids, inputs: { weight: ids.map(() => 1 / (count * length(i))) } };
  });
}

/** The sequences that most checks learn from. */
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

/** Throws if numbers differ by more than the tolerance. */
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

/** Runs a function with an engine and disposes it. */
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

/** Runs a function with a temporary folder and removes it. */
export async function inFolder(work: (folder: string) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "pawl-conformance-"));
  try {
    await work(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** The log-probability of every token of the vocabulary after a prompt. */
export async function continuations(
  engine: Engine,
  prompt: readonly number[],
): Promise<readonly number[]> {
  const targets = [...prompt.map(() => 0), 1];
  const all = Array.from({ length: engine.capabilities.vocabularySize }, (_, id) => id);
  const results = await engine.forward(all.map((id) => ({ ids: [...prompt, id], targets })));
  const logprobs = results.map((result) => result.logprobs[prompt.length]!);
  // If they belonged to other tokens or positions, they would not sum to 1.
  close([logprobs.reduce((sum, x) => sum + Math.exp(x), 0)], [1], 1e-4);
  return logprobs;
}

/** The log-probabilities of a distribution after its logits are divided by a temperature. */
export function tempered(logprobs: readonly number[], temperature: number): readonly number[] {
  const divided = logprobs.map((x) => x / temperature);
  const sum = Math.log(divided.reduce((total, x) => total + Math.exp(x), 0));
  return divided.map((x) => x - sum);
}

/**
 * Pearson's statistic of draws against log-probabilities; cells with fewer than 5 expected draws
 * are merged.
 */
export function chiSquare(draws: readonly number[], logprobs: readonly number[]) {
  const observed = logprobs.map(() => 0);
  for (const token of draws) observed[token]! += 1;
  const expected = logprobs.map((x) => draws.length * Math.exp(x));
  const isRare = expected.map((count) => count < 5);
  const rare = (counts: readonly number[]) =>
    counts.reduce((sum, count, i) => sum + (isRare[i] ? count : 0), 0);
  const cells = [
    ...expected.flatMap((count, i) => (isRare[i] ? [] : [[observed[i]!, count] as const])),
    ...(rare(expected) > 1 ? [[rare(observed), rare(expected)] as const] : []),
  ];
  const statistic = cells.reduce((sum, [o, e]) => sum + (o - e) ** 2 / e, 0);
  return { statistic, cells: cells.length };
}

/** The value that a chi-square exceeds once in ten thousand times (Wilson and Hilferty 1931). */
export function chiSquareLimit(degrees: number): number {
  const part = 2 / (9 * degrees);
  return degrees * (1 - part + 3.719 * Math.sqrt(part)) ** 3;
}

/**
 * The arithmetic of a task and what it moves through memory, counted from a model's shape.
 *
 * Left out: norms' and activations' own operations (their memory traffic is counted instead), padding,
 * and that the embedded engine computes a part of the last layer for targets only.
 */
import type { ModelConfig } from "../../src/engine/weights/model-config.js";
import type { Learn, Score, Task } from "./task.js";

/** What one phase needs. Passes and decode steps are apart, because other things limit them. */
export interface Work {
  /** Reading prompts, scoring and learning: floating-point operations of matrix products. */
  readonly passFlops: number;
  /** Numbers of activations written and read between the products. */
  readonly passNumbers: number;
  /** Numbers of attention scores, on engines that keep them in memory. */
  readonly passScores: number;
  /** Passes over micro-batches; one with a backward pass counts as three. */
  readonly passes: number;
  /** Decode steps, each of all rows that are decoded together. */
  readonly steps: number;
  /** Operations of all decode steps, and numbers of keys and values that they read. */
  readonly stepFlops: number;
  readonly stepKeys: number;
  /** Numbers in the KV cache at the beginning of each turn but the first. */
  readonly copied: number;
  /** Optimiser steps. */
  readonly updates: number;
}

const NOTHING: Work = {
  passFlops: 0,
  passNumbers: 0,
  passScores: 0,
  passes: 0,
  steps: 0,
  stepFlops: 0,
  stepKeys: 0,
  copied: 0,
  updates: 0,
};

/** Tokens that a cached row has room for beyond its own (`engine/embedded/batching.ts`). */
const SPARE = 64;

const queries = ({ heads, headSize }: ModelConfig): number => heads * headSize;
const keys = ({ kvHeads, headSize }: ModelConfig): number => kvHeads * headSize;

/** Weights of a layer's matrices. */
export function layerWeights(shape: ModelConfig): number {
  const { hiddenSize, mlpSize } = shape;
  return hiddenSize * (2 * queries(shape) + 2 * keys(shape) + 3 * mlpSize);
}

/** Numbers of keys and values that a token leaves in the cache. */
export function cachedNumbers(shape: ModelConfig): number {
  return 2 * shape.layers * keys(shape);
}

/** Pairs of a token and one that it sees, `fresh` tokens after `before` others. */
export function seenPairs(before: number, fresh: number): number {
  return fresh * before + (fresh * (fresh + 1)) / 2;
}

/** How much an engine computes at a time. */
export interface Limits {
  /** Tokens of a micro-batch. */
  readonly batchTokens: number;
  /** Rows decoded together. */
  readonly rows: number;
  /** Tokens that fit into the KV cache between turns; prompts of more are read anew. */
  readonly cachedTokens: number;
}

/** Rows of `fresh` tokens after `before` cached ones. */
interface Rows {
  readonly rows: number;
  readonly before: number;
  readonly fresh: number;
}

/** A forward pass that predicts `targets` tokens of each row. */
export function forwardWork(
  shape: ModelConfig,
  limits: Limits,
  pass: Rows & { readonly targets: number },
): Work {
  const { layers, hiddenSize, vocabularySize, heads, mlpSize } = shape;
  const tokens = pass.rows * pass.fresh;
  const pairs = pass.rows * seenPairs(pass.before, pass.fresh);
  const logits = pass.rows * pass.targets * vocabularySize;
  const between = 5 * hiddenSize + 2 * queries(shape) + 2 * keys(shape) + 3 * mlpSize;
  return {
    ...NOTHING,
    passFlops:
      2 * layers * layerWeights(shape) * tokens +
      4 * layers * queries(shape) * pairs +
      2 * hiddenSize * logits,
    // Each written once and read once.
    passNumbers: 2 * (layers * between * tokens + 2 * logits),
    // Four passes over them, each of which reads and writes (docs/performance.md).
    passScores: 8 * layers * heads * pairs,
    passes: Math.ceil(tokens / limits.batchTokens),
  };
}

/** Decoding the rows' fresh tokens, one after the other. */
export function decodeWork(
  shape: ModelConfig,
  limits: Limits,
  { rows, before, fresh }: Rows,
): Work {
  const { layers, hiddenSize, vocabularySize } = shape;
  const pairs = rows * seenPairs(before, fresh);
  const weights = layers * layerWeights(shape) + hiddenSize * vocabularySize;
  return {
    ...NOTHING,
    steps: Math.ceil(rows / limits.rows) * fresh,
    stepFlops: 2 * weights * rows * fresh + 4 * layers * queries(shape) * pairs,
    stepKeys: cachedNumbers(shape) * pairs,
  };
}

/** The work of a task. */
export function workOf(shape: ModelConfig, limits: Limits, task: Task): Work {
  if (task.do === "score") return passOf(shape, limits, task);
  if (task.do === "learn") return learning(passOf(shape, limits, task), task.steps ?? 1);
  /** A turn: what is new in the prompts is read, and they are continued. */
  const turn = (read: Rows, count: number, fresh: number): Work =>
    sum([
      forwardWork(shape, limits, { ...read, targets: 1 }),
      decodeWork(shape, limits, {
        rows: read.rows * count,
        before: read.before + read.fresh,
        fresh,
      }),
    ]);
  if (task.do === "sample") {
    const { prompts: rows, count, prompt, cached = 0, fresh, times = 1 } = task;
    return scaled(turn({ rows, before: cached, fresh: prompt - cached }, count, fresh), times);
  }
  const { episodes: rows, turns, first, response, observation } = task;
  const later = Array.from({ length: turns - 1 }, (_, index) => {
    const before = first + index * (response + observation) + response;
    if (rows * (before + SPARE) > limits.cachedTokens)
      return turn({ rows, before: 0, fresh: before + observation }, 1, response);
    const continued = turn({ rows, before, fresh: observation }, 1, response);
    return { ...continued, copied: rows * before * cachedNumbers(shape) };
  });
  return sum([turn({ rows, before: 0, fresh: first }, 1, response), ...later]);
}

function passOf(shape: ModelConfig, limits: Limits, task: Learn | Score): Work {
  const { sequences: rows, length: fresh, targets = fresh } = task;
  return forwardWork(shape, limits, { rows, before: 0, fresh, targets });
}

/** A backward pass computes twice what the forward pass does. */
function learning(forward: Work, updates: number): Work {
  return { ...scaled(forward, 3), updates };
}

/** Works one after the other. */
export function sum(works: readonly Work[]): Work {
  return works.reduce((all, one) => combined((name) => all[name] + one[name]));
}

function scaled(work: Work, times: number): Work {
  return combined((name) => times * work[name]);
}

function combined(value: (name: keyof Work) => number): Work {
  const names = Object.keys(NOTHING) as (keyof Work)[];
  return Object.fromEntries(names.map((name) => [name, value(name)])) as unknown as Work;
}

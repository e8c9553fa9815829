/**
 * The filter of easy samples: a small model is fitted to some of the triplets (a tenth in the paper), and
 * most of the remaining triplets that it already predicts are dropped, so that training focuses on those
 * worth predicting. Off by default: in both worlds where it was tried, RWML learnt more without
 * (docs/results/rwml.md).
 */

import { createRandom, mixSeed } from "@pawl/core/random.js";
import type { StepSequence } from "@pawl/core/update/merge.js";
import { z } from "zod";
import type { Question } from "./question.js";
import { nameOf, type Triplet } from "./triplet.js";

/** Settings of the filter. */
export const filterOptions = z
  .strictObject({
    model: z
      .string()
      .default("start")
      .describe("model to fit: start (a copy of the model to train), a run, or a model folder"),
    share: z
      .number()
      .min(0)
      .lt(1)
      .default(0)
      .describe("fraction of the triplets to fit it on (0: no filter; the paper's: 0.1)"),
    keep: z.number().min(0).max(1).default(0.1).describe("probability of keeping an easy triplet"),
    easyReward: z
      .number()
      .gt(0)
      .max(1)
      .default(0.9)
      .describe("a triplet is easy if the greedy prediction's reward is at least this"),
    epochs: z.int().min(1).default(2).describe("epochs over its triplets"),
    batch: z.int().min(1).default(32).describe("triplets per optimiser step"),
    learningRate: z.number().gt(0).default(1e-4).describe("AdamW learning rate"),
  })
  .prefault({});

/** Settings of the filter. */
export type FilterOptions = z.output<typeof filterOptions>;

/** What the filter did. */
export interface Filtered {
  readonly kept: readonly Triplet[];
  readonly easy: number;
  readonly hard: number;
}

/** A random share of the triplets, and the others; both in order. */
export function splitTriplets(
  triplets: readonly Triplet[],
  share: number,
  seed: number,
): readonly [drawn: readonly Triplet[], rest: readonly Triplet[]] {
  const order = createRandom(seed).shuffle(triplets.map((_, i) => i));
  const drawn = new Set(order.slice(0, Math.round(share * triplets.length)));
  return [triplets.filter((_, i) => drawn.has(i)), triplets.filter((_, i) => !drawn.has(i))];
}

/** Keeps what the filter model does not predict, and a few of the other triplets. */
export function keepHard(
  triplets: readonly Triplet[],
  rewards: readonly number[],
  { keep, easyReward }: Pick<FilterOptions, "keep" | "easyReward">,
  seed: number,
): Filtered {
  const isEasy = rewards.map((reward) => reward >= easyReward);
  const kept = triplets.filter(
    (triplet, i) =>
      !isEasy[i] || createRandom(mixSeed(seed, "keep", nameOf(triplet))).next() < keep,
  );
  const easy = isEasy.filter(Boolean).length;
  return { kept, easy, hard: triplets.length - easy };
}

/** A triplet as a sequence whose answer is to be learnt, with a weight of 1 per token. */
export function answerSequence(question: Question, triplet: Triplet): StepSequence {
  const prompt = question.ask(triplet).ids;
  const answer = question.answer(triplet);
  const weight = new Float32Array(answer.length).fill(1);
  return {
    ids: [...prompt, ...answer],
    start: prompt.length,
    targets: Uint8Array.from(weight),
    inputs: { weight },
  };
}

/**
 * The filter of easy samples: a small model is fitted to a tenth of the triplets, and of the rest those that
 * it already predicts are mostly dropped, so that learning is spent on what is worth predicting.
 */
import { z } from "zod";
import { createRandom, mixSeed } from "../random.js";
import type { StepSequence } from "../update/merge.js";
import type { Question } from "./question.js";
import { nameOf, type Triplet } from "./triplet.js";

/** Settings of the filter. */
export const filterOptions = z
  .strictObject({
    model: z
      .string()
      .default("start")
      .describe(
        "the model to fit: start is a copy of the one to train; else a run or model folder",
      ),
    share: z
      .number()
      .min(0)
      .lt(1)
      .default(0.1)
      .describe("share of the triplets to fit it to; 0: no filter"),
    keep: z
      .number()
      .min(0)
      .max(1)
      .default(0.1)
      .describe("probability of keeping a triplet that it predicts"),
    easyReward: z
      .number()
      .gt(0)
      .max(1)
      .default(0.9)
      .describe("its most probable prediction earns at least this: easy"),
    epochs: z.int().min(1).default(2).describe("passes over its share"),
    batch: z.int().min(1).default(32).describe("triplets per optimiser step"),
    learningRate: z.number().gt(0).default(1e-4).describe("step size of AdamW"),
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

/** A share of the triplets, drawn at random, and the others; both in order. */
export function splitTriplets(
  triplets: readonly Triplet[],
  share: number,
  seed: number,
): readonly [drawn: readonly Triplet[], rest: readonly Triplet[]] {
  const order = createRandom(seed).shuffle(triplets.map((_, i) => i));
  const drawn = new Set(order.slice(0, Math.round(share * triplets.length)));
  return [triplets.filter((_, i) => drawn.has(i)), triplets.filter((_, i) => !drawn.has(i))];
}

/** Keeps what the filter model does not predict, and a few of the others. */
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

/** A triplet as a sequence whose answer is to be learnt, weighing 1 per token. */
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

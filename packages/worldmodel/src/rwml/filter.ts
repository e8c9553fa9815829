/**
 * The filter of easy samples: a small model is fitted to some of the triplets (a tenth in the paper), and
 * most of the remaining triplets that it already predicts are dropped, so that training focuses on those
 * worth predicting. Off by default: in both worlds where it was tried, RWML learnt more without
 * (docs/results/rwml.md).
 */

import type { TargetSequence } from "@pawl/core/engine/engine.js";
import { createRandom, mixSeed } from "@pawl/core/random.js";
import type { Episode } from "@pawl/core/rollout/episode.js";
import { encodeResponse } from "@pawl/core/text/encode.js";
import type { PromptStyle } from "@pawl/core/text/prompt.js";
import type { Tokenizer } from "@pawl/core/text/tokenizer.js";
import { mergeContinuations, type StepSequence } from "@pawl/core/update/merge.js";
import { z } from "zod";
import { policyPrompt, type Question } from "./question.js";
import { nameOf, responseOf, type Triplet } from "./triplet.js";

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

/** Held-out sequences by what their targets are. */
interface HeldOutSequences {
  /** The policy's responses: how it acts. */
  readonly actions: readonly TargetSequence[];
  /** The next states: what it predicts. */
  readonly states: readonly TargetSequence[];
}

/** The episodes to hold out: about `share` of the tasks, each with all of its episodes. */
export function holdOut(
  episodes: readonly Episode[],
  share: number,
  seed: number,
): ReadonlySet<Episode> {
  const tasks = [...new Set(episodes.map(({ task }) => task.id))];
  const count = Math.ceil(share * tasks.length);
  const held = new Set(createRandom(seed).shuffle(tasks).slice(0, count));
  return new Set(episodes.filter(({ task }) => held.has(task.id)));
}

/** The steps of held-out triplets; those that continue one another form one sequence. */
export function heldOutSequences(
  triplets: readonly Triplet[],
  question: Question,
  tokenizer: Tokenizer,
  style: PromptStyle,
): HeldOutSequences {
  const actions = triplets.map((triplet) => {
    const prompt = policyPrompt(tokenizer, style, triplet).ids;
    const answer = encodeResponse(tokenizer, style, responseOf(triplet));
    const targets = new Uint8Array(answer.length).fill(1);
    return { ids: [...prompt, ...answer], start: prompt.length, targets, inputs: {} };
  });
  const states = triplets.map((triplet) => answerSequence(question, triplet));
  return { actions: mergeContinuations(actions), states: mergeContinuations(states) };
}

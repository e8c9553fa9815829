/** Predictions: what the model says an action will do, sampled like a policy's actions. */
import { askEngine } from "@pawl/core/engine/ask.js";
import type { Engine } from "@pawl/core/engine/engine.js";
import { mixSeed } from "@pawl/core/random.js";
import { appendResponse } from "@pawl/core/text/encode.js";
import type { Sequence } from "@pawl/core/text/sequence.js";
import type { Answer, Question } from "./question.js";
import { nameOf, type Triplet } from "./triplet.js";

/** How to sample. */
export interface PredictOptions {
  /** Predictions per triplet. */
  readonly count: number;
  readonly maxTokens: number;
  /** 0 is greedy decoding. */
  readonly temperature: number;
  readonly seed: number;
}

/** One prediction, with its sampled tokens. */
export interface Prediction extends Answer {
  readonly response: string;
  readonly sequence: Sequence;
}

/** Predictions of each triplet: triplets × count. */
export async function predict(
  engine: Engine,
  question: Question,
  triplets: readonly Triplet[],
  { count, maxTokens, temperature, seed }: PredictOptions,
): Promise<readonly (readonly Prediction[])[]> {
  const prompts = triplets.map((triplet) => question.ask(triplet));
  const requests = triplets.map((triplet, i) => ({
    prompt: prompts[i]!.ids,
    count,
    maxTokens,
    temperature,
    stop: question.stop,
    seed: mixSeed(seed, nameOf(triplet)),
  }));
  const samples = await askEngine(() => engine.sample(requests));
  return samples.map((group, i) =>
    group.map((sample) => ({
      ...question.read(sample.tokens),
      sequence: appendResponse(prompts[i]!, { ...sample, ids: sample.tokens, temperature }),
    })),
  );
}

/** The triplets whose question and answer fit the model's context. */
export function fitting(
  engine: Engine,
  question: Question,
  triplets: readonly Triplet[],
  maxTokens: number,
): readonly Triplet[] {
  const { maxContext } = engine.capabilities;
  return triplets.filter((triplet) => question.ask(triplet).ids.length + maxTokens <= maxContext);
}

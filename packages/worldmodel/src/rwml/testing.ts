/**
 * Fixtures for tests: an episode, its triplets, a tokenizer, and an encoder that needs no model.
 */

import { housePrompt } from "@pawl/core/envs/household/prompt.js";
import type { Episode } from "@pawl/core/rollout/episode.js";
import { type PromptStyle, promptStyle } from "@pawl/core/text/prompt.js";
import { buildTokenizer } from "@pawl/core/text/tokenizer-builder.js";
import { type Encoder, normalise } from "@pawl/models/embeddings/encoder.js";
import type { Prediction } from "./prediction-groups.js";
import type { AnswerProblem } from "./question.js";

/** Three steps in a house; the last one ends the episode. */
export const episode: Episode = {
  task: { id: "train/7", split: "train", type: "pick" },
  group: 2,
  attempt: 1,
  seed: 5,
  policy: "test",
  goal: "Put a mug on a desk.",
  firstObservation: "You are in the office: desk 1, drawer 1.",
  steps: [
    ["go to drawer 1", "The drawer 1 is closed."],
    ["open drawer 1", "The drawer 1 is open now. In drawer 1: mug 1."],
    ["look", ""],
  ].map(([action, observation]) => ({
    prompt: [],
    response: action!,
    action: action!,
    wellFormed: true,
    valid: true,
    observation: observation!,
    reward: 0,
  })),
  return: 0,
  success: false,
  stop: "done",
};

/** The compact style with the whole history, as for small models. */
export const compact: PromptStyle = promptStyle(housePrompt, { style: "compact", history: "all" });

/** A tokenizer that can spell the episode. */
export const tokenizer = buildTokenizer([
  episode.goal,
  episode.firstObservation,
  ...episode.steps.flatMap(({ action, observation }) => [action, observation]),
]);

/** A parsed prediction, with arbitrary tokens. */
export function prediction(text: string, problem?: AnswerProblem): Prediction {
  const sequence = {
    ids: [1, 2, 3],
    spans: [
      { kind: "prompt", start: 0, end: 2, origin: "env" },
      { kind: "action", start: 2, end: 3, origin: "policy" },
    ],
    logprobs: [-1],
  } as const;
  return { text, response: text, sequence, ...(problem !== undefined && { problem }) };
}

/** Vectors of letter counts: similar for similar words. */
export const letters: Encoder = {
  name: "letters",
  dimension: 26,
  encode: async (texts) =>
    texts.map((text) => {
      const vector = new Float32Array(26);
      for (const letter of text.toLowerCase()) {
        const at = letter.charCodeAt(0) - 97;
        if (at >= 0 && at < 26) vector[at]! += 1;
      }
      return normalise(vector);
    }),
};

/**
 * The sim-to-real reward: how close a predicted next state is to the real one, by one of several
 * measures.
 */

import { mixSeed } from "@pawl/core/random.js";
import {
  type ChatClient,
  chatClientOptions,
  createChatClient,
} from "@pawl/core/rollout/policies/chat-client.js";
import type { ChatMessage } from "@pawl/core/text/tokenizer.js";
import type { Encoder } from "@pawl/models/embeddings/encoder.js";
import { encoderOptions, isEndpoint, openEncoder } from "@pawl/models/embeddings/open-encoder.js";
import { z } from "zod";

/**
 * ROUGE-L (Lin 2004): F1 of the longest common subsequence of words, for states that are data more than prose.
 *
 *   P = LCS / |predicted|,   R = LCS / |real|,   F = 2·P·R / (P + R)
 */

/** ROUGE-L of two texts, in [0, 1]; words are runs of letters and digits, in lower case. */
export function rougeL(predicted: string, real: string): number {
  const a = wordsOf(predicted);
  const b = wordsOf(real);
  if (a.length === 0 || b.length === 0) return a.length === b.length ? 1 : 0;
  return (2 * longestCommon(a, b)) / (a.length + b.length);
}

const wordsOf = (text: string): readonly string[] =>
  text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];

/** The length of the longest common subsequence, row by row. */
function longestCommon(a: readonly string[], b: readonly string[]): number {
  let row = new Uint32Array(b.length + 1);
  for (const word of a) {
    const next = new Uint32Array(b.length + 1);
    for (let j = 0; j < b.length; j++) {
      next[j + 1] = word === b[j] ? row[j]! + 1 : Math.max(row[j + 1]!, next[j]!);
    }
    row = next;
  }
  return row[b.length]!;
}

/**
 * The verdict in a judge's answer: yes, no, or neither.
 *
 * A yes or no counts only as an answer, not inside a sentence ("there is no difference"). It is
 * looked for in this order: a labelled verdict ("Verdict: NO"), a line of its own, then the
 * answer's first and last words. If two of the same kind contradict each other, there is no
 * verdict.
 */

/** What a judge is asked to end with, so that the verdict can be found. */
export const VERDICT_REQUEST =
  "End your answer with a line of its own: the word VERDICT, a colon, and YES or NO.";

/** Not both at once, which repeats the question and is not an answer. */
const single = "(?!\\s*(?:/|or\\b|and\\b)\\s*(?:yes|no)\\b)";
/** `Verdict: **no**`, `the answer is yes`, `{"answer": "no"}`, `\boxed{yes}`. */
const labelled = new RegExp(
  `\\b(?:verdict|answer|judge?ment|conclusion|decision|boxed)\\b[^a-z0-9\\n]*(?:is\\b[^a-z0-9\\n]*)?\\b(yes|no)\\b${single}`,
  "gi",
);
const alone = /^[^a-z0-9\n]*(yes|no)[^a-z0-9\n]*$/gim;
/**
 * "No" before another word is rarely an answer ("no difference"), unless a sentence starts there.
 */
const first = new RegExp(
  `^[^a-z0-9]*(?:(yes)\\b${single}|(no)\\b${single}(?!\\.?\\s*\\d)(?=[^a-z0-9\\s]|\\s*$|\\s+(?:it|the|they|this|that|these|there|because|since)\\b))`,
  "i",
);
const last =
  /(?:^|[.!?:,;—–-]|\b(?:so|therefore|thus|hence|is|say))[^a-z0-9]*\b(yes|no)[^a-z0-9]*$/i;

/** Whether the answer says yes; undefined if it says neither, or both. */
export function verdictOf(answer: string): boolean | undefined {
  const said = answer.split("</think>").at(-1)!;
  // Truncated reasoning has not reached a verdict.
  if (said.includes("<think>")) return undefined;
  const words = (pattern: RegExp) => [...said.matchAll(pattern)].map((match) => match[1]!);
  const ends = [first, last].flatMap((pattern) => pattern.exec(said)?.slice(1) ?? []);
  for (const found of [words(labelled), words(alone), ends.filter((word) => word !== undefined)]) {
    const distinct = new Set(found.map((word) => word.toLowerCase()));
    if (distinct.size > 1) return undefined;
    if (distinct.size === 1) return distinct.has("yes");
  }
  return undefined;
}

/** A reward of 1 if the model says yes; an answer that is neither yes nor no is 0 and counted. */
export function judgeReward(client: ChatClient, model: string): StateReward {
  return {
    name: `judge ${model}`,
    async rate(pairs, signal) {
      const verdicts = await Promise.all(
        pairs.map(async (pair) => {
          const seed = mixSeed("judge", pair.action, pair.real, pair.predicted);
          return verdictOf(await client(question(pair), seed, signal));
        }),
      );
      return {
        values: verdicts.map((verdict) => (verdict === true ? 1 : 0)),
        unreadable: verdicts.filter((verdict) => verdict === undefined).length,
      };
    },
  };
}

function question({ predicted, real, action }: StatePair): readonly ChatMessage[] {
  const content = [
    "A simulated world answered an action with an observation, and a model predicted that observation.",
    `The action:\n${action}`,
    `What the world answered:\n${real}`,
    `What the model predicted:\n${predicted}`,
    "Does the prediction say the same about the state of the world? Other words are fine; a thing that is missing, added or different is not.",
    VERDICT_REQUEST,
  ].join("\n\n");
  return [{ role: "user", content }];
}

const judge = {
  ...chatClientOptions.shape,
  temperature: z.number().min(0).default(0).describe("sampling temperature"),
};

/** Settings of each measure: the source of types, defaults, help and errors. */
const variants = z.discriminatedUnion("name", [
  z.strictObject({
    name: z.literal("embedding").describe("how predictions are scored"),
    threshold: z
      .number()
      .gt(0)
      .max(2)
      .default(0.05)
      .describe(
        "τ: a prediction within this cosine distance is correct (pawl wm threshold proposes a value)",
      ),
    graded: z.boolean().default(false).describe("reward 1 − distance / 2τ instead of 1 or 0"),
    encoder: encoderOptions,
  }),
  z.strictObject({ name: z.literal("rouge") }),
  z.strictObject({ name: z.literal("judge"), ...judge }),
]);

/** The same, with embeddings as the default measure. */
export const rewardOptions = z
  .preprocess((raw) => ({ name: "embedding", ...(raw as object) }), variants)
  .prefault({});

/** Settings of the reward. */
export type RewardOptions = z.output<typeof rewardOptions>;

/** Where the encoder of the embeddings runs; undefined for other measures. */
export function encoderPlace(reward: RewardOptions): "endpoint" | "here" | undefined {
  if (reward.name !== "embedding") return undefined;
  return isEndpoint(reward.encoder) ? "endpoint" : "here";
}

/** Opens the measure chosen by the settings. */
export async function openReward(
  options: RewardOptions,
  onNotice?: (message: string) => void,
): Promise<StateReward> {
  switch (options.name) {
    case "embedding":
      return embeddingReward(await openEncoder(options.encoder, onNotice), options);
    case "rouge":
      return {
        name: "ROUGE-L",
        rate: async (pairs) => ({
          values: pairs.map(({ predicted, real }) => rougeL(predicted, real)),
          unreadable: 0,
        }),
      };
    case "judge": {
      const { name: _, ...connection } = options;
      return judgeReward(createChatClient(connection), connection.model);
    }
  }
}

// Reward by meaning: the cosine distance d between the embeddings of predicted and real next state.
//
//   binary   1 where d < τ, else 0
//   graded   max(0, 1 − d / 2τ), which is one half where the binary one jumps

/** τ, and whether the reward is graded by distance. */
interface EmbeddingRewardOptions {
  readonly threshold: number;
  readonly graded: boolean;
}

/** A reward from a sentence encoder. */
export function embeddingReward(
  encoder: Encoder,
  { threshold, graded }: EmbeddingRewardOptions,
): StateReward {
  return {
    name: `${encoder.name}, ${encoder.dimension} dimensions`,
    async rate(pairs) {
      const distances = await stateDistances(encoder, pairs);
      const values = distances.map((distance) =>
        graded ? Math.max(0, 1 - distance / (2 * threshold)) : distance < threshold ? 1 : 0,
      );
      return { values, unreadable: 0 };
    },
  };
}

/** The cosine distance of each pair, in [0, 2]; exactly 0 for equal texts. */
export async function stateDistances(
  encoder: Encoder,
  pairs: readonly Pick<StatePair, "predicted" | "real">[],
): Promise<readonly number[]> {
  const differing = pairs.filter(({ predicted, real }) => predicted !== real);
  const vectors = await encoder.encode(
    differing.flatMap(({ predicted, real }) => [predicted, real]),
  );
  let at = 0;
  return pairs.map(({ predicted, real }) => {
    if (predicted === real) return 0;
    const [a, b] = [vectors[at++]!, vectors[at++]!];
    let product = 0;
    for (let i = 0; i < encoder.dimension; i++) product += a[i]! * b[i]!;
    return Math.min(2, Math.max(0, 1 - product));
  });
}

/** The type of a sim-to-real reward: a measure of how close predicted states are to real ones. */

/** A predicted state and the real one, with the action between them, which a judge needs. */
export interface StatePair {
  readonly predicted: string;
  readonly real: string;
  readonly action: string;
}

/** Rewards in [0, 1], and how many of them are 0 because the measure itself gave no answer. */
interface Rewards {
  readonly values: readonly number[];
  readonly unreadable: number;
}

/** A measure of predictions. */
export interface StateReward {
  /** Its name, for errors and to check that a resumed run uses the same measure. */
  readonly name: string;
  rate(pairs: readonly StatePair[], signal?: AbortSignal): Promise<Rewards>;
}

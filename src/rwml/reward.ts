/**
 * The sim-to-real reward: how close a predicted next state is to the real one, by one of several
 * measures.
 */
import { z } from "zod";
import { encoderOptions, isEndpoint, openEncoder } from "../embeddings/open-encoder.js";
import { chatClientOptions, createChatClient } from "../rollout/policies/chat-client.js";
import { embeddingReward } from "./embedding-reward.js";
import { judgeReward } from "./judge-reward.js";
import { rougeL } from "./rouge.js";
import type { StateReward } from "./state-reward.js";

export type { StatePair, StateReward } from "./state-reward.js";

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

/** Reward by a chat model as a judge: the baseline for the embedding reward. */

import { mixSeed } from "@pawl/core/random.js";
import type { ChatClient } from "@pawl/core/rollout/policies/chat-client.js";
import type { ChatMessage } from "@pawl/core/text/tokenizer.js";
import type { StatePair, StateReward } from "./state-reward.js";
import { VERDICT_REQUEST, verdictOf } from "./verdict.js";

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

/** A chat model as a world model, prompted with some trajectories and not trained: the baseline. */
import { setMaxListeners } from "node:events";
import { mixSeed } from "@pawl/core/random.js";
import type { ChatClient } from "@pawl/core/rollout/policies/chat-client.js";
import type { ChatMessage } from "@pawl/core/text/tokenizer.js";
import type { WorldModel, WorldQuery } from "./model.js";
import { type Protocol, readResponse, responseText, systemText } from "./protocol.js";
import type { Trajectory } from "./trajectory.js";

/** What the model is shown. */
export interface FewShotOptions {
  readonly name: string;
  /** Trajectories to show as examples. */
  readonly examples: readonly Trajectory[];
  /** Turns of each to show. */
  readonly turns: number;
  readonly protocol: Protocol;
}

/** Asks a chat model for every response. */
export function fewShotModel(client: ChatClient, options: FewShotOptions): WorldModel {
  const examples = options.examples.map((one, at) => exampleText(one, at, options)).join("\n\n");
  const messagesOf = (query: WorldQuery): readonly ChatMessage[] => {
    const { protocol } = options;
    const opening = protocol.context ? query : { ...query, context: undefined };
    const task = systemText(opening, protocol);
    return [
      { role: "system", content: examples === "" ? task : `${examples}\n\n${task}` },
      ...query.turns.flatMap(({ action, observation }): readonly ChatMessage[] => [
        { role: "user", content: action },
        { role: "assistant", content: observation },
      ]),
      { role: "user", content: query.action },
    ];
  };
  return {
    name: options.name,
    predict(queries, signal) {
      // Every question listens to it: many at once are no leak.
      if (signal !== undefined) setMaxListeners(0, signal);
      return Promise.all(
        queries.map(async (query) => {
          const seed = mixSeed(query.goal, query.turns.length, query.action);
          const answer = await client(messagesOf(query), seed, signal);
          const outcome = readResponse(withoutThought(answer), false, options.protocol);
          const isEmpty = outcome.observation === "" && !outcome.success;
          return { ...outcome, ...(isEmpty && { degeneration: "empty" as const }) };
        }),
      );
    },
  };
}

function exampleText(trajectory: Trajectory, at: number, { turns, protocol }: FewShotOptions) {
  const { goal, context, firstObservation } = trajectory;
  const state = protocol.context && context !== undefined ? `\nInitial state: ${context}` : "";
  const shown = trajectory.turns
    .slice(0, turns)
    .map((turn) => `Action: ${turn.action}\nReply: ${responseText(turn, protocol)}`);
  return `Example ${at + 1}\nGoal: ${goal}${state}\nFirst observation: ${firstObservation}\n${shown.join("\n")}`;
}

/** Reasoning models think aloud before they answer. */
function withoutThought(text: string): string {
  const end = text.lastIndexOf("</think>");
  return end < 0 ? text : text.slice(end + "</think>".length);
}

/**
 * Episodes as ShareGPT conversations with the agent as the assistant, one a line, as LLaMA-Factory
 * and others read them for supervised fine-tuning. Responses are kept as the model wrote them. Where
 * prompts are prose, each step is a conversation of its own with the prompt that was really read.
 */

import type { ChatMessage } from "@pawl/agents/chat.js";
import type { Episode } from "@pawl/core/rollout/episode.js";
import { isConversation } from "@pawl/core/text/conversation.js";
import type { Tool } from "@pawl/core/text/tool.js";
import { episodeName, type Source } from "./source.js";
import { apart, readably, type SpokenMessage, spokenIn } from "./spoken.js";

/** The conversations of an episode. */
export function* sharegptRecords(episode: Episode, source: Source): Generator<unknown> {
  const { task, success, score, steps } = episode;
  const chat = steps.some(({ prompt }) => isConversation(prompt));
  for (const spoken of spokenIn(episode, chat ? readably : apart)) {
    const { tools, messages } = spoken;
    const last = messages.findLastIndex(({ step }) => step !== undefined);
    const system = messages.find(({ role }) => role === "system")?.content;
    yield {
      id: `${episodeName(episode)}${chat ? "" : `.${spoken.steps[0]}`}`,
      system,
      tools: tools && JSON.stringify(tools.map(toolJson)),
      // What comes after the last response teaches an agent nothing.
      conversations: messages
        .slice(0, last + 1)
        .filter(({ role }) => role !== "system")
        .map(turnOf),
      env: source.environment,
      task: task.id,
      split: task.split,
      type: task.type,
      policy: episode.policy,
      reward: episode.return,
      success,
      score,
    };
  }
}

const SPEAKERS = {
  user: "human",
  assistant: "gpt",
  tool: "observation",
  system: "system",
} as const;

function turnOf({ role, content, written }: SpokenMessage): unknown {
  return { from: SPEAKERS[role], value: written ?? content };
}

/** A message as JSON. */
export interface MessageJson {
  readonly role: string;
  readonly content: string;
  readonly reasoning_content?: string;
  readonly tool_calls?: readonly {
    readonly id: string;
    readonly type: "function";
    readonly function: { readonly name: string; readonly arguments: string };
  }[];
  readonly tool_call_id?: string;
}

/** One message. */
export function messageJson({
  role,
  content,
  reasoning,
  calls,
  answers,
}: ChatMessage): MessageJson {
  return {
    role,
    content,
    reasoning_content: reasoning,
    tool_calls: calls?.map(({ id, tool, arguments: text }) => ({
      id,
      type: "function",
      function: { name: tool, arguments: text },
    })),
    tool_call_id: answers,
  };
}

/** A tool's declaration. */
export function toolJson({ name, description, parameters }: Tool): unknown {
  return { type: "function", function: { name, description, parameters } };
}

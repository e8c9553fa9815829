/**
 * A chat model as a policy, behind any OpenAI-compatible endpoint: the paper's prompting baselines.
 */
import { z } from "zod";
import { mixSeed } from "../../random.js";
import type { PromptStyle } from "../../text/prompt.js";
import type { Episode } from "../episode.js";
import type { Policy, Situation } from "../policy.js";
import {
  type ChatClient,
  ChatError,
  type ChatRuntime,
  chatClientOptions,
  createChatClient,
} from "./chat-client.js";
import {
  messagesOf,
  piecesOf,
  plainDialogue,
  reactDialogue,
  reflectionDialogue,
} from "./dialogue.js";

/** Settings of a chat model as a policy. */
export const chatOptions = z.strictObject({
  ...chatClientOptions.shape,
  prompting: z
    .enum(["plain", "react", "reflexion"])
    .default("plain")
    .describe(
      "plain: each step on its own; react: keeps all earlier reasoning; reflexion: react plus a reflection after each failed attempt",
    ),
  memory: z
    .int()
    .min(1)
    .default(3)
    .describe("reflexion: how many of the latest reflections to keep"),
});

/** Settings of a chat model as a policy, as callers give them. */
export type ChatOptions = z.input<typeof chatOptions>;

/** Longer reflections are cut: they are read at every step of the next attempt. */
const longestNote = 1_000;

/** Asks a chat model for every action. `style` must be the one the rollout parses answers with. */
export function chatPolicy(
  options: ChatOptions,
  style: PromptStyle,
  runtime?: ChatRuntime,
): Policy {
  const { prompting, memory, ...connection } = chatOptions.parse(options);
  if (style.responseEnd !== "") {
    throw new ChatError(
      `A chat model cannot read the prompt style ${style.name}: its markers are tokens of small models. Set the prompt's style to full.`,
    );
  }
  if (style.promptTokens !== undefined) {
    throw new ChatError(
      "prompt.maxTokens counts tokens, and the tokenizer of a chat model behind an endpoint is not known here: use prompt.history.",
    );
  }
  const client = createChatClient(connection, runtime);
  const notes = prompting === "reflexion" ? reflexionNotes(client, memory) : undefined;

  const answer = async (situation: Situation, signal?: AbortSignal) => {
    const view = { ...situation, memory: notes?.of(situation) ?? [] };
    // A conversation keeps earlier reasoning by itself.
    const turns =
      prompting === "plain"
        ? plainDialogue(situation.prompt)
        : style.name === "chat"
          ? plainDialogue(style.render(view))
          : reactDialogue(style, view);
    const response = await client(messagesOf(turns), situation.seed, signal);
    return prompting === "plain" ? { response } : { response, prompt: piecesOf(turns) };
  };

  return {
    name: `${prompting === "plain" ? "chat" : prompting}:${connection.model}`,
    batch: 1,
    sequential: notes !== undefined,
    act: (situations, signal) => Promise.all(situations.map((one) => answer(one, signal))),
    ...(notes && { finished: notes.finished }),
  };
}

type Attempted = Pick<Situation, "group" | "task">;

/** Keep the reflections of this many groups: far more than ever run concurrently. */
const keptGroups = 1_000;

/**
 * The reflections of each group, written after failed attempts. A broken episode is not a failure.
 */
function reflexionNotes(client: ChatClient, memory: number) {
  const notes = new Map<string, readonly string[]>();
  const keyOf = ({ group, task }: Attempted) => `${group} ${task.id}`;
  return {
    of: (attempt: Attempted) => notes.get(keyOf(attempt)) ?? [],
    finished: async (episode: Episode, signal?: AbortSignal): Promise<void> => {
      if (episode.success || episode.stop === "broken") return;
      const key = keyOf(episode);
      const earlier = notes.get(key) ?? [];
      const messages = messagesOf(reflectionDialogue(episode, earlier));
      const text = await client(messages, mixSeed("reflection", episode.seed), signal);
      const note = withoutThought(text).slice(0, longestNote);
      if (note === "") return;
      notes.set(key, [...earlier, note].slice(-memory));
      const [oldest] = notes.keys();
      if (notes.size > keptGroups && oldest !== undefined) notes.delete(oldest);
    },
  };
}

/** Reasoning models think aloud first; the reflection is what comes after. */
function withoutThought(text: string): string {
  const end = text.lastIndexOf("</think>");
  const note = end < 0 ? text : text.slice(end + "</think>".length);
  return note.split(/\s+/).filter(Boolean).join(" ");
}

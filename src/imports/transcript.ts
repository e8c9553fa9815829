/**
 * Transcripts: conversations of agents that other programs recorded, with their tools and rewards.
 * They are imitated (`warmStart.data`), and world models learn from them (`pawl wm data`).
 */
import type { z } from "zod";
import type { ChatMessage } from "../agents/chat.js";
import type { Episode, Step } from "../rollout/episode.js";
import { answersOf } from "../text/response.js";
import { callText, isRecord, type Tool } from "../text/tool.js";

/** A recorded conversation. */
export interface Transcript {
  /** File and line, for messages to people. */
  readonly where: string;
  /** The environment's name, if the record says it. */
  readonly env?: string;
  /** Each record of an unknown task counts as its own task. */
  readonly task: string;
  readonly split: string;
  readonly type: string;
  readonly policy: string;
  readonly tools: readonly Tool[] | undefined;
  readonly messages: readonly ChatMessage[];
  /** Which messages are the model's own, to be imitated once: the assistant's, by default. */
  readonly own: readonly boolean[];
  readonly return: number;
  readonly success: boolean;
}

/** Why a record is no transcript. */
export class Unreadable extends Error {
  override readonly name = "Unreadable";
}

/** A record that has this form; `Unreadable` otherwise, with the place of the first problem. */
export function recordOf<S extends z.ZodType>(schema: S, value: unknown): z.output<S> {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const { path, message } = parsed.error.issues[0]!;
  throw new Unreadable(`${path.filter((key) => typeof key === "string").join(".")} ${message}`);
}

const tagged = answersOf({}, "tags");

/** A transcript as an episode: each of the model's messages is a step. */
export function transcriptEpisode(transcript: Transcript, group: number): Episode {
  const { messages, task, split, type, policy, success } = transcript;
  const first = messages.findIndex(({ role }) => role === "assistant");
  const opening = messages.slice(0, first).filter(({ role }) => role === "user");
  const system = messages.find(({ role }) => role === "system")?.content;
  const goal = opening[0]?.content.trim() ?? "";
  const steps: Step[] = [];
  for (const [at, message] of messages.entries()) {
    if (message.role !== "assistant") continue;
    const next = messages.findIndex(({ role }, i) => i > at && role === "assistant");
    const replies = messages.slice(at + 1, next < 0 ? messages.length : next);
    steps.push({
      // Prompts are rendered from the messages where they are needed.
      prompt: [],
      response: message.content,
      action: actionOf(message),
      wellFormed: true,
      valid: true,
      observation: replies
        .map(({ content }) => content)
        .join("\n")
        .trim(),
      reward: next < 0 ? transcript.return : 0,
    });
  }
  // A last answer that nothing answered says nothing about a world.
  const answered = steps.at(-1)?.observation === "" ? steps.slice(0, -1) : steps;
  return {
    task: { id: task, split, type },
    ...{ group, attempt: 0, seed: 0, policy, goal },
    firstObservation: opening.at(-1)?.content.trim() ?? "",
    ...(system !== undefined && system !== "" && { initialContext: system }),
    steps: answered,
    return: transcript.return,
    success,
    stop: "done",
  };
}

/** What an assistant's message does: its calls, what it marks as its action, or all it says. */
function actionOf({ content, calls = [] }: ChatMessage): string {
  if (calls.length > 0)
    return calls
      .map(({ tool, arguments: text }) => callText({ tool, arguments: argumentsOf(text) }))
      .join("\n");
  if (content.includes("<action>")) return tagged.parse(content).action;
  const at = content.lastIndexOf("Action:");
  return at < 0 ? content.trim() : content.slice(at + "Action:".length).trim();
}

/** The arguments of a call, which must be a JSON object. */
export function argumentsOf(text: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(text === "" ? "{}" : text);
  } catch {
    throw new Unreadable("a tool call whose arguments are not JSON");
  }
  if (isRecord(value)) return value;
  throw new Unreadable("a tool call whose arguments are not a JSON object");
}

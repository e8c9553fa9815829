/**
 * The messages of a chat as tokens: a whole conversation in the model's chat template, or what
 * follows an answer that was sampled, appended to its very tokens.
 */
import {
  asTurns,
  type Conversation,
  conversationPieces,
  framedMessages,
  frameOfTurn,
  type Message,
  type Turn,
} from "@pawl/core/text/conversation.js";
import { appendPieces, appendTurn, ofKind, type TokenForm } from "@pawl/core/text/encode.js";
import type { PromptPiece } from "@pawl/core/text/prompt-style.js";
import type { Sequence } from "@pawl/core/text/sequence.js";
import type { Tokenizer } from "@pawl/core/text/tokenizer.js";
import { type CallForm, isRecord, type Tool } from "@pawl/core/text/tool.js";
import { formatCall, howToCall } from "@pawl/core/text/tool-calls.js";
import type { ChatCall, ChatMessage } from "./chat.js";
import { SessionError } from "./session-error.js";

/** What a conversation of messages depends on. */
export interface ChatForm {
  readonly tools: readonly Tool[] | undefined;
  readonly calls: CallForm;
  /** What the model wrote for this message, if it was sampled here. */
  sampled?(message: ChatMessage, at: number): string | undefined;
}

/** The messages as a conversation in pieces with their origins. */
export function chatConversation(messages: readonly ChatMessage[], form: ChatForm): Conversation {
  const { tools, calls } = form;
  const last = messages.findLastIndex(({ role }) => role === "assistant");
  return {
    ...(tools !== undefined && { tools: { tools, how: howToCall(calls) } }),
    messages: messages.map((message, at): Message => {
      const { role, content } = message;
      if (role !== "assistant") return plainMessage(message, originOf(message, at, last));
      const text = form.sampled?.(message, at) ?? writtenAnswer(message, calls);
      const called = message.calls?.length ?? 0;
      return {
        role,
        pieces: [{ origin: "history", text: text === "" ? content : text }],
        calls: called,
      };
    }),
  };
}

/** Messages that answer the last response. */
export function replyMessages(messages: readonly ChatMessage[]): readonly Message[] {
  return messages.map((message) => plainMessage(message, "observation"));
}

function plainMessage(
  { role, content, answers }: ChatMessage,
  origin: PromptPiece["origin"],
): Message {
  return { role, pieces: [{ origin, text: content }], call: answers };
}

function originOf({ role }: ChatMessage, at: number, last: number): PromptPiece["origin"] {
  if (role === "system") return "system";
  if (last < 0) return "task";
  return at > last ? "observation" : "history";
}

/** An answer that was not sampled here, as the model would have written it. */
function writtenAnswer({ content, reasoning, calls = [] }: ChatMessage, form: CallForm): string {
  const thought = reasoning === undefined ? "" : `<think>\n${reasoning}\n</think>\n\n`;
  const written = calls.map((call) => {
    return formatCall({ tool: call.tool, arguments: argumentsOf(call) }, form);
  });
  return `${thought}${[content, ...written].filter((part) => part !== "").join("\n")}`;
}

function argumentsOf({ id, arguments: text }: ChatCall): Record<string, unknown> {
  let values: unknown;
  try {
    values = JSON.parse(text === "" ? "{}" : text);
  } catch (error) {
    throw new SessionError(`call ${id}: its arguments are not JSON: ${(error as Error).message}`);
  }
  if (isRecord(values)) return values;
  throw new SessionError(`call ${id}: expected arguments that are a JSON object, got ${text}`);
}

/** The pieces of a conversation as a step records them. */
export function recordedPieces({ tools, messages }: Conversation): readonly PromptPiece[] {
  return [
    ...(tools === undefined ? [] : [{ origin: "tools" as const, text: JSON.stringify(tools) }]),
    ...messages.flatMap(({ role, pieces, call }) =>
      pieces.map((piece, at) =>
        at === 0 ? { ...piece, role, ...(call !== undefined && { call }) } : piece,
      ),
    ),
  ];
}

/** The prompt of a whole conversation. */
export function encodeConversation(
  tokenizer: Tokenizer,
  conversation: Conversation,
  form: TokenForm,
): Sequence {
  const pieces = ofKind("prompt", conversationPieces(tokenizer, conversation));
  return appendPieces({ ids: [], spans: [] }, tokenizer, form, pieces);
}

/** What follows a sampled answer. */
export interface Continued {
  /** Prompt, answer and the messages that answer it. */
  readonly observed: Sequence;
  /** The next prompt; undefined if the template is not append-only here. */
  readonly next: Sequence | undefined;
}

/**
 * The tokens of a prompt and its answer, followed by the messages that answer it. What the template
 * writes between several such messages counts as observed: whoever predicts them predicts that too.
 */
export function continueWith(
  tokenizer: Tokenizer,
  answered: Sequence,
  turn: Omit<Turn, "replies">,
  replies: readonly Message[],
  form: TokenForm,
): Continued {
  const messages = asTurns(tokenizer, replies);
  const frame = frameOfTurn(tokenizer, { ...turn, replies: messages.map(({ role }) => role) });
  const pieces = ofKind("observation", framedMessages(messages, frame).slice(1, -1));
  const { observed, next } = appendTurn(answered, tokenizer, form, frame, pieces);
  return { observed, next: frame.problem === undefined ? next() : undefined };
}

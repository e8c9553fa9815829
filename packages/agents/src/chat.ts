/**
 * Chat as agents' clients speak it: messages and tools in, one answer with its tokens out. The AI
 * SDK model and each API of the HTTP endpoint translate their dialect to these types; a session
 * refuses what it cannot do, and records what was sampled.
 */
import type { Tool } from "@pawl/core/text/tool.js";

/** A tool call that the model wrote or a client repeats. */
export interface ChatCall {
  readonly id: string;
  readonly tool: string;
  /** The arguments as JSON text, as the model wrote them. */
  readonly arguments: string;
}

/** One message of a conversation. */
export interface ChatMessage {
  readonly role: "system" | "user" | "assistant" | "tool";
  readonly content: string;
  /** What an assistant thought before it spoke. */
  readonly reasoning?: string;
  /** The tools that an assistant called. */
  readonly calls?: readonly ChatCall[];
  /** The id of the call that a tool's message answers. */
  readonly answers?: string;
}

/** JSON that an answer must be. */
export interface AnswerFormat {
  /** What it must fit into (default: any object). */
  readonly schema?: Readonly<Record<string, unknown>>;
  readonly name?: string;
}

/** What an answer must be, besides what the model likes: by masks on what is sampled. */
export interface Constraints {
  /** An answer calls some tool, or this one (default: as the model likes). */
  readonly toolChoice?: "required" | { readonly tool: string };
  /** The tools whose arguments must fit into their parameters' schema. */
  readonly strictTools?: readonly string[];
  /** An answer has one call at most. */
  readonly oneCall?: boolean;
  readonly format?: AnswerFormat;
}

/** A question to the model: the conversation so far, and how to go on. */
export interface ChatRequest extends Constraints {
  readonly messages: readonly ChatMessage[];
  /** Those that are offered; an API's "no tools now" leaves them out. */
  readonly tools?: readonly Tool[];
  readonly maxTokens?: number;
  readonly temperature?: number;
  readonly topP?: number;
  readonly topK?: number;
  /** Texts after which the answer ends; they are not part of it. */
  readonly stop?: readonly string[];
  readonly seed?: number;
}

/** The model's answer, in words and in the tokens that were sampled. */
export interface ChatAnswer {
  readonly text: string;
  readonly reasoning?: string;
  readonly calls: readonly ChatCall[];
  /** Why it ended: by itself, at its maximum length, or with calls that wait for their results. */
  readonly stop: "stop" | "length" | "calls";
  /** The stop text that ended it. */
  readonly stopText?: string;
  /** What is wrong with a call that cannot be read or names no tool; its text is in `text`. */
  readonly malformed?: string;
  /** The tokens that were read, and those that were sampled with their log-probabilities. */
  readonly promptTokens: readonly number[];
  readonly tokens: readonly number[];
  readonly logprobs: readonly number[];
}

/** A part of an answer that is heard while it is sampled: first the prompt, then what is added. */
export type Heard =
  | { readonly prompt: readonly number[] }
  | { readonly reasoning: string }
  | { readonly text: string };

/** One episode's conversation with the model. Calls that fork it are recorded as such. */
export interface ChatSession {
  /** `hear` gets the parts of the answer as they are sampled; its calls come with the answer. */
  ask(
    request: ChatRequest,
    signal?: AbortSignal,
    hear?: (heard: Heard) => void,
  ): Promise<ChatAnswer>;
}

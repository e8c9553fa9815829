/**
 * An API of the endpoint: how its requests are read into a question to the model, and how the answer
 * is written, whole or as the events of a stream. One folder for each: `completions`, `responses`,
 * `messages`.
 */
import type { Tokenizer } from "@pawl/core/text/tokenizer.js";
import type { ChatAnswer, ChatMessage, ChatRequest, Heard } from "../chat.js";
import type { PartNames, Refusal } from "./refusal.js";

/** What an answer's frame is made from. */
export interface Frame {
  /** Unique to the answer. */
  readonly id: string;
  /** The model that is served. */
  readonly model: string;
  /** Seconds since 1970. */
  readonly created: number;
  readonly tokenizer: Tokenizer;
  /** What was answered in this session; undefined without one. */
  readonly memory: Memory | undefined;
}

/** Answers of a session, for APIs whose clients refer to them by id. */
export interface Memory {
  /** The conversation up to an answer, without its instructions. */
  readonly conversations: Map<string, readonly ChatMessage[]>;
  /** The parts of answers. */
  readonly items: Map<string, Omit<ChatMessage, "role">>;
}

/** A server-sent event. */
export interface StreamEvent {
  readonly name?: string;
  readonly data: object | "[DONE]";
}

/** Writes an answer as the events of a stream. */
export interface EventWriter {
  hear(heard: Heard): readonly StreamEvent[];
  end(answer: ChatAnswer): readonly StreamEvent[];
  /** After something was sent, an error has no status. */
  fail(refusal: Refusal): readonly StreamEvent[];
}

/** A request that was read, and how its answer is written. */
export interface Exchange {
  readonly model: string;
  readonly stream: boolean;
  readonly request: ChatRequest;
  whole(answer: ChatAnswer): object;
  events(): EventWriter;
}

/** An API. */
export interface Api {
  /** Reads the body of a request; refuses what cannot be obeyed. */
  read(body: unknown, frame: Frame): Exchange;
  readonly parts: PartNames;
  errorBody(refusal: Refusal): object;
}

/** The tokens of an answer, for clients that ask for them with `return_token_ids`. */
export function tokensOf({ promptTokens, tokens, logprobs }: ChatAnswer): object {
  return { prompt_token_ids: promptTokens, token_ids: tokens, token_logprobs: logprobs };
}

/** A session as JSON: its calls with the very tokens that were read and sampled. */
import type { ChatMessage } from "../chat.js";
import { answerMessage, type RecordedSession } from "../session.js";

/** What was said in a session. */
export interface SessionRecord {
  readonly id: string;
  readonly object: "session";
  /** Seconds since 1970. */
  readonly created: number;
  readonly calls: readonly CallRecord[];
}

/** One call of the model. */
export interface CallRecord {
  readonly index: number;
  /** Index of the call that this one continues token for token; null if it starts a sequence. */
  readonly parent: number | null;
  readonly messages: readonly ChatMessage[];
  readonly tools?: RecordedSession["calls"][number]["tools"];
  readonly answer: ChatMessage;
  readonly stop: "stop" | "length" | "calls";
  /** What is wrong with a call that cannot be read. */
  readonly malformed?: string;
  readonly temperature: number;
  /** What the answer was held to: log-probabilities are those among the tokens it allowed. */
  readonly constraint?: RecordedSession["calls"][number]["constraint"];
  readonly prompt_token_ids: readonly number[];
  readonly token_ids: readonly number[];
  /** Log-probabilities under the model itself, at temperature 1 and without truncation. */
  readonly logprobs: readonly number[];
  /** Log-probabilities under the distribution that was sampled from. */
  readonly sampled_logprobs?: readonly number[];
}

/** The record of a session so far. */
export function sessionRecord(of: {
  readonly id: string;
  readonly created: number;
  readonly session: RecordedSession;
}): SessionRecord {
  const { id, created, session } = of;
  return {
    id,
    object: "session",
    created: Math.floor(created / 1000),
    calls: session.calls.map((call): CallRecord => {
      const { index, parent, messages, tools, answer, sample, temperature, constraint } = call;
      return {
        index,
        parent: parent?.index ?? null,
        messages,
        ...(tools !== undefined && { tools }),
        answer: answerMessage(answer),
        stop: answer.stop,
        ...(answer.malformed !== undefined && { malformed: answer.malformed }),
        temperature,
        ...(constraint !== undefined && { constraint }),
        prompt_token_ids: answer.promptTokens,
        token_ids: sample.tokens,
        logprobs: sample.logprobs,
        ...(sample.sampledLogprobs !== undefined && { sampled_logprobs: sample.sampledLogprobs }),
      };
    }),
  };
}

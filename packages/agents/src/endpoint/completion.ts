/** Answers as OpenAI's chat completions, whole or as the chunks of a stream. */
import type { Tokenizer } from "@pawl/core/text/tokenizer.js";
import type { ChatAnswer } from "../chat.js";
import type { CompletionRequest } from "./completion-request.js";

/** What stands around an answer. */
export interface CompletionFrame {
  readonly id: string;
  readonly model: string;
  /** Seconds since 1970. */
  readonly created: number;
}

/** What of an answer was asked for. */
export type Wanted = Pick<CompletionRequest, "logprobs" | "tokenIds" | "streamUsage">;

const finishReasons = { stop: "stop", length: "length", calls: "tool_calls" } as const;

/** The whole answer. */
export function completionOf(
  answer: ChatAnswer,
  frame: CompletionFrame,
  wanted: Wanted,
  tokenizer: Tokenizer,
): object {
  const { text, reasoning, calls } = answer;
  return {
    ...headOf(frame, "chat.completion"),
    ...(wanted.tokenIds && { prompt_token_ids: answer.promptTokens }),
    choices: [
      {
        index: 0,
        message: {
          role: "assistant",
          content: text === "" && calls.length > 0 ? null : text,
          refusal: null,
          ...(reasoning !== undefined && { reasoning_content: reasoning }),
          ...(calls.length > 0 && { tool_calls: calls.map(toolCallOf) }),
        },
        logprobs: wanted.logprobs ? logprobsOf(answer, tokenizer) : null,
        finish_reason: finishReasons[answer.stop],
        ...(wanted.tokenIds && { token_ids: answer.tokens }),
      },
    ],
    usage: usageOf(answer),
  };
}

/**
 * The answer as chunks. It was sampled as a whole, because calls and reasoning are known only at its
 * end; each chunk is one part of it: its role, reasoning, text, calls, and why it ended.
 */
export function chunksOf(
  answer: ChatAnswer,
  frame: CompletionFrame,
  wanted: Wanted,
  tokenizer: Tokenizer,
): readonly object[] {
  const { text, reasoning, calls, promptTokens, tokens } = answer;
  const chunk = (choices: readonly object[], more: object = {}) => ({
    ...headOf(frame, "chat.completion.chunk"),
    ...more,
    choices,
    ...(wanted.streamUsage && { usage: null }),
  });
  const delta = (parts: object, more: object = {}) => ({
    index: 0,
    delta: parts,
    logprobs: null,
    finish_reason: null,
    ...more,
  });
  return [
    chunk(
      [delta({ role: "assistant", content: "" })],
      wanted.tokenIds ? { prompt_token_ids: promptTokens } : {},
    ),
    ...(reasoning === undefined ? [] : [chunk([delta({ reasoning_content: reasoning })])]),
    ...(text === "" ? [] : [chunk([delta({ content: text })])]),
    ...calls.map((call, index) => chunk([delta({ tool_calls: [{ index, ...toolCallOf(call) }] })])),
    chunk([
      delta(
        {},
        {
          ...(wanted.logprobs && { logprobs: logprobsOf(answer, tokenizer) }),
          finish_reason: finishReasons[answer.stop],
          ...(wanted.tokenIds && { token_ids: tokens }),
        },
      ),
    ]),
    ...(wanted.streamUsage ? [{ ...chunk([]), usage: usageOf(answer) }] : []),
  ];
}

const headOf = ({ id, model, created }: CompletionFrame, object: string) => ({
  id,
  object,
  created,
  model,
});

function toolCallOf({ id, tool, arguments: values }: ChatAnswer["calls"][number]) {
  return { id, type: "function", function: { name: tool, arguments: values } } as const;
}

function usageOf({ promptTokens, tokens }: ChatAnswer) {
  return {
    prompt_tokens: promptTokens.length,
    completion_tokens: tokens.length,
    total_tokens: promptTokens.length + tokens.length,
  };
}

function logprobsOf({ tokens, logprobs }: ChatAnswer, tokenizer: Tokenizer) {
  const content = tokens.map((id, at) => {
    const token = tokenizer.decode([id]);
    // A part of a character has no text of its own.
    const bytes = token.includes("\uFFFD") ? null : [...Buffer.from(token)];
    return { token, logprob: logprobs[at], bytes, top_logprobs: [] };
  });
  return { content, refusal: null };
}

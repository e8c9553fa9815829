/** OpenAI's chat completions: answers whole, or as the chunks of a stream. */
import type { Tokenizer } from "@pawl/core/text/tokenizer.js";
import type { ChatAnswer } from "../chat.js";
import type { Api, EventWriter, Frame } from "./api.js";
import {
  COMPLETION_PARTS,
  type CompletionRequest,
  parseCompletionRequest,
} from "./completion-request.js";
import { errorBody } from "./refusal.js";

/** The API. */
export const completions: Api = {
  parts: COMPLETION_PARTS,
  errorBody,
  read(body, frame) {
    const request = parseCompletionRequest(body);
    const { model, stream } = request;
    return {
      ...{ model, stream, request },
      whole: (answer) => completionOf(answer, frame, request),
      events: () => chunks(frame, request),
    };
  },
};

const finishReasons = { stop: "stop", length: "length", calls: "tool_calls" } as const;

/** The whole answer. */
function completionOf(answer: ChatAnswer, frame: Frame, wanted: CompletionRequest): object {
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
        logprobs: wanted.logprobs ? logprobsOf(answer, frame.tokenizer) : null,
        finish_reason: finishReasons[answer.stop],
        ...(wanted.tokenIds && { token_ids: answer.tokens }),
      },
    ],
    usage: usageOf(answer),
  };
}

/** The answer as chunks: its role, what is heard, its calls, and why it ended. */
function chunks(frame: Frame, wanted: CompletionRequest): EventWriter {
  const chunk = (choices: readonly object[], more: object = {}) => ({
    data: {
      ...headOf(frame, "chat.completion.chunk"),
      choices,
      ...(wanted.streamUsage && { usage: null }),
      ...more,
    },
  });
  const delta = (parts: object, more: object = {}) => ({
    index: 0,
    delta: parts,
    logprobs: null,
    finish_reason: null,
    ...more,
  });
  return {
    hear(heard) {
      if ("prompt" in heard) {
        const tokens = wanted.tokenIds ? { prompt_token_ids: heard.prompt } : {};
        return [chunk([delta({ role: "assistant", content: "" })], tokens)];
      }
      const part =
        "text" in heard ? { content: heard.text } : { reasoning_content: heard.reasoning };
      return [chunk([delta(part)])];
    },
    end: (answer) => [
      ...answer.calls.map((call, index) =>
        chunk([delta({ tool_calls: [{ index, ...toolCallOf(call) }] })]),
      ),
      chunk([
        delta(
          {},
          {
            ...(wanted.logprobs && { logprobs: logprobsOf(answer, frame.tokenizer) }),
            finish_reason: finishReasons[answer.stop],
            ...(wanted.tokenIds && { token_ids: answer.tokens }),
          },
        ),
      ]),
      ...(wanted.streamUsage ? [chunk([], { usage: usageOf(answer) })] : []),
      { data: "[DONE]" },
    ],
    fail: (refusal) => [{ data: errorBody(refusal) }],
  };
}

const headOf = ({ id, model, created }: Frame, object: string) => ({
  id: `chatcmpl-${id}`,
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

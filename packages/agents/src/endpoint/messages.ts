/** Anthropic's messages API: answers whole, or as the events of a stream. */
import type { ChatAnswer } from "../chat.js";
import { type Api, type EventWriter, type Frame, type StreamEvent, tokensOf } from "./api.js";
import { MESSAGES_PARTS, type MessagesRequest, parseMessagesRequest } from "./messages-request.js";
import type { Refusal } from "./refusal.js";

/** The API. */
export const messages: Api = {
  parts: MESSAGES_PARTS,
  errorBody,
  read(body, frame) {
    const asked = parseMessagesRequest(body);
    const { model, stream, request } = asked;
    return {
      ...{ model, stream, request },
      whole: (answer) => messageOf(answer, frame, asked),
      events: () => events(frame, asked),
    };
  },
};

const errorTypes: Readonly<Record<number, string>> = {
  401: "authentication_error",
  403: "permission_error",
  404: "not_found_error",
  413: "request_too_large",
  429: "rate_limit_error",
  503: "overloaded_error",
};

/** The body of a refusal; its status is that of the other APIs. */
function errorBody({ status, message }: Refusal): object {
  const type = errorTypes[status] ?? (status >= 500 ? "api_error" : "invalid_request_error");
  return { type: "error", error: { type, message } };
}

function messageOf(answer: ChatAnswer, frame: Frame, { tokenIds }: MessagesRequest): object {
  const { text, reasoning, calls } = answer;
  return {
    ...headOf(frame),
    content: [
      ...(reasoning === undefined ? [] : [{ ...thinking, thinking: reasoning }]),
      ...(text === "" && calls.length > 0 ? [] : [{ type: "text", text }]),
      ...calls.map(({ id, tool, arguments: values }) => ({
        ...{ type: "tool_use", id, name: tool },
        input: JSON.parse(values),
      })),
    ],
    ...endOf(answer),
    usage: usageOf(answer.promptTokens.length, answer.tokens.length),
    ...(tokenIds && tokensOf(answer)),
  };
}

const thinking = { type: "thinking", thinking: "", signature: "" } as const;
const stops = { stop: "end_turn", length: "max_tokens", calls: "tool_use" } as const;

const headOf = ({ id, model }: Frame) => ({
  id: `msg_${id}`,
  type: "message",
  role: "assistant",
  model,
});

const endOf = ({ stop, stopText }: ChatAnswer) => ({
  stop_reason: stop === "stop" && stopText !== undefined ? "stop_sequence" : stops[stop],
  stop_sequence: stop === "stop" ? (stopText ?? null) : null,
});

const usageOf = (input: number, output: number) => ({
  input_tokens: input,
  output_tokens: output,
  cache_creation_input_tokens: 0,
  cache_read_input_tokens: 0,
});

/** The message, its blocks one after another, and why it ended. */
function events(frame: Frame, { tokenIds }: MessagesRequest): EventWriter {
  let blocks = 0;
  let open: "text" | "thinking" | undefined;
  const event = (type: string, more: object = {}): StreamEvent => ({
    name: type,
    data: { type, ...more },
  });
  const close = (): readonly StreamEvent[] => {
    if (open === undefined) return [];
    open = undefined;
    return [event("content_block_stop", { index: blocks++ })];
  };
  const start = (content_block: object) =>
    event("content_block_start", { index: blocks, content_block });
  const delta = (delta: object) => event("content_block_delta", { index: blocks, delta });
  return {
    hear(heard) {
      if ("prompt" in heard) {
        const usage = usageOf(heard.prompt.length, 0);
        const message = { ...headOf(frame), content: [], stop_reason: null, stop_sequence: null };
        return [event("message_start", { message: { ...message, usage } })];
      }
      const type = "text" in heard ? "text" : "thinking";
      const begun: StreamEvent[] = [];
      if (open !== type) {
        begun.push(...close());
        begun.push(start(type === "text" ? { type, text: "" } : thinking));
        open = type;
      }
      return [
        ...begun,
        delta(
          "text" in heard
            ? { type: "text_delta", text: heard.text }
            : { type: "thinking_delta", thinking: heard.reasoning },
        ),
      ];
    },
    end: (answer) => [
      ...close(),
      ...answer.calls.flatMap(({ id, tool, arguments: values }) => [
        start({ type: "tool_use", id, name: tool, input: {} }),
        delta({ type: "input_json_delta", partial_json: values }),
        event("content_block_stop", { index: blocks++ }),
      ]),
      event("message_delta", {
        delta: endOf(answer),
        usage: usageOf(answer.promptTokens.length, answer.tokens.length),
        ...(tokenIds && tokensOf(answer)),
      }),
      event("message_stop"),
    ],
    fail: (refusal) => [{ name: "error", data: errorBody(refusal) }],
  };
}

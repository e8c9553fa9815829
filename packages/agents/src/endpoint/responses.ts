/** OpenAI's responses API: answers whole, or as the events of a stream. */
import type { ChatAnswer } from "../chat.js";
import { type Api, type EventWriter, type Frame, type StreamEvent, tokensOf } from "./api.js";
import { errorBody } from "./refusal.js";
import {
  parseResponsesRequest,
  RESPONSES_PARTS,
  type ResponsesRequest,
} from "./responses-request.js";

/** The API. */
export const responses: Api = {
  parts: RESPONSES_PARTS,
  errorBody,
  read(body, frame) {
    const asked = parseResponsesRequest(body, frame.memory);
    const { model, stream, request } = asked;
    return {
      ...{ model, stream, request },
      whole: (answer) => {
        remember(answer, frame, asked);
        return responseOf(answer, frame, asked);
      },
      events: () => events(frame, asked),
    };
  },
};

const idOf = {
  response: ({ id }: Frame) => `resp_${id}`,
  reasoning: ({ id }: Frame) => `rs_${id}`,
  message: ({ id }: Frame) => `msg_${id}`,
  call: ({ id }: Frame, at: number) => `fc_${id}_${at}`,
};

/** Keeps an answer for a client that refers to it later. */
function remember(answer: ChatAnswer, frame: Frame, { conversation, store }: ResponsesRequest) {
  const { memory } = frame;
  if (memory === undefined || !store) return;
  const { text, reasoning, calls } = answer;
  const thought = reasoning === undefined ? {} : { reasoning };
  memory.items.set(idOf.reasoning(frame), { content: "", ...thought });
  memory.items.set(idOf.message(frame), { content: text });
  for (const [at, call] of calls.entries())
    memory.items.set(idOf.call(frame, at), { content: "", calls: [call] });
  const said = { role: "assistant", content: text, ...thought } as const;
  memory.conversations.set(idOf.response(frame), [
    ...conversation,
    { ...said, ...(calls.length > 0 && { calls }) },
  ]);
}

type Call = ChatAnswer["calls"][number];

const reasoningItem = (frame: Frame, text: string | undefined) => ({
  ...{ type: "reasoning", id: idOf.reasoning(frame), summary: [] },
  content: text === undefined ? [] : [{ type: "reasoning_text", text }],
});
const textPart = (text: string) => ({ type: "output_text", text, annotations: [], logprobs: [] });
const messageItem = (frame: Frame, status: string, text: string | undefined) => ({
  ...{ type: "message", id: idOf.message(frame), role: "assistant", status },
  content: text === undefined ? [] : [textPart(text)],
});
const callItem = (
  frame: Frame,
  at: number,
  { id, tool }: Call,
  values: string,
  status: string,
) => ({
  ...{ type: "function_call", id: idOf.call(frame, at), call_id: id, name: tool },
  ...{ arguments: values, status },
});

/** A response, of which there is nothing but its head at first. */
function headOf(frame: Frame, { repeated, store }: ResponsesRequest) {
  return {
    ...{ id: idOf.response(frame), object: "response", created_at: frame.created },
    ...{ model: frame.model, error: null, incomplete_details: null, ...repeated, store },
    ...{ background: false, service_tier: "default", usage: null, output: [] },
  };
}

function responseOf(answer: ChatAnswer, frame: Frame, asked: ResponsesRequest): object {
  const { text, reasoning, calls, stop, promptTokens, tokens } = answer;
  const isCut = stop === "length";
  const status = isCut ? "incomplete" : "completed";
  return {
    ...headOf(frame, asked),
    ...{ status, completed_at: Math.floor(Date.now() / 1000) },
    ...(isCut && { incomplete_details: { reason: "max_output_tokens" } }),
    output: [
      ...(reasoning === undefined ? [] : [reasoningItem(frame, reasoning)]),
      ...(text === "" && calls.length > 0 ? [] : [messageItem(frame, status, text)]),
      ...calls.map((call, at) => callItem(frame, at, call, call.arguments, "completed")),
    ],
    usage: {
      input_tokens: promptTokens.length,
      input_tokens_details: { cached_tokens: 0 },
      output_tokens: tokens.length,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: promptTokens.length + tokens.length,
    },
    ...(asked.tokenIds && tokensOf(answer)),
  };
}

/** The response, its items one after another, and the whole of it. */
function events(frame: Frame, asked: ResponsesRequest): EventWriter {
  let number = 0;
  let output = 0;
  let open: { readonly type: "reasoning" | "message"; text: string } | undefined;
  const event = (type: string, more: object): StreamEvent => ({
    name: type,
    data: { type, sequence_number: number++, ...more },
  });
  const place = (item_id: string) => ({ item_id, output_index: output });
  const added = (item: object) =>
    event("response.output_item.added", { output_index: output, item });
  const done = (item: object) =>
    event("response.output_item.done", { output_index: output++, item });
  const inPart = () =>
    open!.type === "message"
      ? { ...place(idOf.message(frame)), content_index: 0 }
      : { ...place(idOf.reasoning(frame)), content_index: 0 };

  const begin = (type: "reasoning" | "message"): readonly StreamEvent[] => {
    open = { type, text: "" };
    if (type === "reasoning")
      return [
        added(reasoningItem(frame, undefined)),
        event("response.content_part.added", {
          ...inPart(),
          part: { type: "reasoning_text", text: "" },
        }),
      ];
    return [
      added(messageItem(frame, "in_progress", undefined)),
      event("response.content_part.added", { ...inPart(), part: textPart("") }),
    ];
  };
  const close = (status: string): readonly StreamEvent[] => {
    if (open === undefined) return [];
    const { type, text } = open;
    const written =
      type === "message"
        ? [
            event("response.output_text.done", { ...inPart(), text, logprobs: [] }),
            event("response.content_part.done", { ...inPart(), part: textPart(text) }),
            done(messageItem(frame, status, text)),
          ]
        : [
            event("response.reasoning_text.done", { ...inPart(), text }),
            event("response.content_part.done", {
              ...inPart(),
              part: { type: "reasoning_text", text },
            }),
            done(reasoningItem(frame, text)),
          ];
    open = undefined;
    return written;
  };
  const called = (call: Call, at: number): readonly StreamEvent[] => {
    const item = place(idOf.call(frame, at));
    return [
      added(callItem(frame, at, call, "", "in_progress")),
      event("response.function_call_arguments.delta", { ...item, delta: call.arguments }),
      event("response.function_call_arguments.done", {
        ...item,
        ...{ name: call.tool, arguments: call.arguments },
      }),
      done(callItem(frame, at, call, call.arguments, "completed")),
    ];
  };
  return {
    hear(heard) {
      if ("prompt" in heard) {
        const response = { ...headOf(frame, asked), status: "in_progress" };
        return ["response.created", "response.in_progress"].map((type) =>
          event(type, { response }),
        );
      }
      const [type, delta] =
        "text" in heard
          ? (["message", heard.text] as const)
          : (["reasoning", heard.reasoning] as const);
      const begun = open?.type === type ? [] : [...close("completed"), ...begin(type)];
      open!.text += delta;
      const more = { ...inPart(), delta };
      return [
        ...begun,
        type === "message"
          ? event("response.output_text.delta", { ...more, logprobs: [] })
          : event("response.reasoning_text.delta", more),
      ];
    },
    end(answer) {
      remember(answer, frame, asked);
      const status = answer.stop === "length" ? "incomplete" : "completed";
      const silent = answer.text === "" && answer.calls.length === 0;
      return [
        ...(silent ? [...close(status), ...begin("message")] : []),
        ...close(status),
        ...answer.calls.flatMap(called),
        event(`response.${status}`, { response: responseOf(answer, frame, asked) }),
      ];
    },
    fail: ({ message, details: { param, code } }) => [
      event("error", { message, param: param ?? null, code: code ?? "server_error" }),
    ],
  };
}

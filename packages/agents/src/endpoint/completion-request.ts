/**
 * OpenAI's chat completion requests, as far as they can be obeyed. A field that would change the
 * answer and is not obeyed is refused by name, unless its value asks for nothing.
 */

import { z } from "zod";
import type { AnswerFormat, ChatCall, ChatMessage, ChatRequest } from "../chat.js";
import {
  count,
  flag,
  label,
  leaveOut,
  neutral,
  object,
  offered,
  parseBody,
  textContent,
  toolName,
  toolsOf,
  topK,
} from "./fields.js";
import { type PartNames, Refusal } from "./refusal.js";

/** What OpenAI calls what a session may refuse. */
export const COMPLETION_PARTS: PartNames = {
  toolChoice: "tool_choice",
  strictTools: "tools[].function.strict",
  oneCall: "parallel_tool_calls",
  format: "response_format",
};

/** A request in our words. */
export interface CompletionRequest extends ChatRequest {
  readonly model: string;
  readonly stream: boolean;
  /** Whether a stream ends with the numbers of tokens. */
  readonly streamUsage: boolean;
  readonly logprobs: boolean;
  readonly tokenIds: boolean;
}

const content = textContent("text");

// Clients send an answer back with what they made of it, such as parsed arguments.
const call = z
  .looseObject({
    id: z.string().min(1),
    type: z.literal("function").optional(),
    function: z.looseObject({ name: z.string().min(1), arguments: z.string() }),
  })
  .transform(
    ({ id, function: { name, arguments: values } }): ChatCall => ({
      id,
      tool: name,
      arguments: values,
    }),
  );

const noName = neutral("write the speaker's name into the content");
const message = z.discriminatedUnion("role", [
  z
    .strictObject({ role: z.enum(["system", "developer"]), content, name: noName })
    .transform(({ content }): ChatMessage => ({ role: "system", content })),
  z
    .strictObject({ role: z.literal("user"), content, name: noName })
    .transform(({ role, content }): ChatMessage => ({ role, content })),
  z
    .looseObject({
      role: z.literal("assistant"),
      content: content.nullish(),
      reasoning_content: z.string().nullish(),
      tool_calls: z.array(call).nullish(),
      refusal: neutral("write it into the content"),
      audio: neutral("the model reads text only"),
      function_call: neutral("use tool_calls"),
    })
    .transform(
      ({ role, content, reasoning_content: reasoning, tool_calls: calls }): ChatMessage => ({
        role,
        content: content ?? "",
        ...(reasoning != null && { reasoning }),
        ...(calls != null && calls.length > 0 && { calls }),
      }),
    ),
  z
    .strictObject({
      role: z.literal("tool"),
      content,
      tool_call_id: z.string().min(1),
      name: label,
    })
    .transform(
      ({ role, content, tool_call_id: answers }): ChatMessage => ({ role, content, answers }),
    ),
]);

const tool = z
  .strictObject({
    type: z.literal("function", { error: "only tools of type function are supported" }),
    function: z.strictObject({
      name: toolName,
      description: z.string().nullish(),
      parameters: object.nullish(),
      strict: flag,
    }),
  })
  .transform(({ function: { name, description, parameters, strict } }) =>
    offered(name, description, parameters, strict),
  );

const stopText = z.string().min(1).max(1000);

const request = z.strictObject({
  model: z.string(),
  messages: z.array(message).min(1).max(10_000),
  tools: toolsOf(tool),
  tool_choice: z
    .union(
      [
        z.enum(["auto", "none", "required"]),
        z
          .strictObject({
            type: z.literal("function"),
            function: z.strictObject({ name: z.string() }),
          })
          .transform(({ function: { name } }) => ({ tool: name })),
      ],
      { error: 'expected auto, none, required or {"type": "function", "function": {"name"}}' },
    )
    .nullish(),
  parallel_tool_calls: flag,
  stream: flag,
  stream_options: z
    .strictObject({ include_usage: flag, include_obfuscation: neutral(leaveOut, false) })
    .nullish(),
  max_tokens: count,
  max_completion_tokens: count,
  temperature: z.number().min(0).max(2).nullish(),
  top_p: z.number().min(0).max(1).nullish(),
  top_k: topK,
  stop: z.union([stopText, z.array(stopText).max(16)]).nullish(),
  seed: z
    .int()
    .min(-(2 ** 53) + 1)
    .max(2 ** 53 - 1)
    .nullish(),
  n: neutral("send the request again instead", 1),
  logprobs: flag,
  top_logprobs: neutral("only the sampled tokens have log-probabilities", 0),
  return_token_ids: flag,
  frequency_penalty: neutral(leaveOut, 0),
  presence_penalty: neutral(leaveOut, 0),
  repetition_penalty: neutral(leaveOut, 1),
  min_p: neutral(leaveOut, 0),
  logit_bias: neutral(leaveOut, {}),
  response_format: z
    .discriminatedUnion("type", [
      z.strictObject({ type: z.literal("text") }).transform(() => undefined),
      z.strictObject({ type: z.literal("json_object") }).transform((): AnswerFormat => ({})),
      z
        .strictObject({
          type: z.literal("json_schema"),
          json_schema: z.strictObject({
            name: z.string(),
            description: label,
            schema: object.nullish(),
            strict: label,
          }),
        })
        .transform(
          ({ json_schema: { name, schema } }): AnswerFormat => ({
            name,
            ...(schema != null && { schema }),
          }),
        ),
    ])
    .nullish(),
  modalities: neutral("the model writes text only", ["text"]),
  store: neutral("use a session: /sessions/ID/v1", false),
  service_tier: neutral(leaveOut, "auto", "default"),
  user: label,
  metadata: label,
  safety_identifier: label,
  prompt_cache_key: label,
});

/** Reads the body of a request; refuses what cannot be obeyed. */
export function parseCompletionRequest(body: unknown): CompletionRequest {
  const given = parseBody(request, body);
  const { max_tokens: older, max_completion_tokens: newer } = given;
  if (older != null && newer != null && older !== newer)
    throw new Refusal(
      400,
      `max_tokens is ${older} and max_completion_tokens is ${newer}; give one of them`,
      { param: "max_tokens" },
    );
  const maxTokens = newer ?? older;
  const {
    temperature,
    top_p: topP,
    top_k: mostProbable,
    stop,
    seed,
    stream_options: streaming,
  } = given;
  if (streaming != null && given.stream !== true)
    throw new Refusal(400, "stream_options is for streams: set stream to true, or leave it out", {
      param: "stream_options",
    });
  const { tool_choice: choice, parallel_tool_calls: parallel, response_format: format } = given;
  const tools = choice === "none" ? [] : (given.tools ?? []);
  const strict = tools.flatMap(({ strict, tool }) => (strict ? [tool.name] : []));
  return {
    model: given.model,
    messages: given.messages,
    ...(tools.length > 0 && { tools: tools.map(({ tool }) => tool) }),
    ...(choice != null && choice !== "auto" && choice !== "none" && { toolChoice: choice }),
    ...(strict.length > 0 && { strictTools: strict }),
    ...(parallel === false && tools.length > 0 && { oneCall: true }),
    ...(format != null && { format }),
    ...(maxTokens != null && { maxTokens }),
    ...(temperature != null && { temperature }),
    ...(topP != null && { topP }),
    ...(mostProbable != null && { topK: Math.max(0, mostProbable) }),
    ...(stop != null && { stop: [stop].flat() }),
    ...(seed != null && { seed }),
    stream: given.stream === true,
    streamUsage: streaming?.include_usage === true,
    logprobs: given.logprobs === true,
    tokenIds: given.return_token_ids === true,
  };
}

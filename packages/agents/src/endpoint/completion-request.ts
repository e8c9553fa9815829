/**
 * OpenAI's chat completion requests, as far as they can be obeyed. A field that would change the
 * answer and is not obeyed is refused by name, unless its value asks for nothing.
 */

import type { Tool } from "@pawl/core/text/tool.js";
import { z } from "zod";
import type { AnswerFormat, ChatCall, ChatMessage, ChatRequest } from "../chat.js";
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

/** A field that is accepted only with values that ask for nothing. */
const neutral = (instead: string, ...values: readonly unknown[]) =>
  z
    .unknown()
    .optional()
    .refine(
      (value) =>
        value == null || values.some((one) => JSON.stringify(one) === JSON.stringify(value)),
      { error: `is not supported; ${instead}` },
    );
const leaveOut = "leave it out";
/** A label that changes no answer. */
const label = z.unknown().optional();
const flag = z.boolean().nullish();

const textParts = z.array(
  z
    .looseObject({ type: z.string(), text: z.unknown().optional() })
    .refine(({ type }) => type === "text", {
      error: ({ input }) =>
        `a part of type ${JSON.stringify((input as { type?: unknown }).type)} is not supported; the model reads text only`,
    })
    .transform(({ text }, context) => {
      if (typeof text === "string") return text;
      context.addIssue("expected the text of the part");
      return z.NEVER;
    }),
);
const content = z.union([z.string(), textParts.transform((parts) => parts.join(""))], {
  error: "expected a text, or a list of parts of type text: the model reads text only",
});

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
      name: z.string().regex(/^[\w.-]{1,64}$/, "expected 1 to 64 letters, digits, _, . or -"),
      description: z.string().nullish(),
      parameters: z.record(z.string(), z.unknown()).nullish(),
      strict: flag,
    }),
  })
  .transform(({ function: { name, description, parameters, strict } }) => ({
    strict: strict === true,
    tool: {
      name,
      description: description ?? "",
      parameters: parameters ?? { type: "object", properties: {} },
    } satisfies Tool,
  }));
const tools = z
  .array(tool)
  .max(512)
  .refine((list) => new Set(list.map(({ tool }) => tool?.name)).size === list.length, {
    error: "two tools have the same name",
  });

const count = z
  .int()
  .min(1)
  .max(2 ** 31 - 1)
  .nullish();
const stopText = z.string().min(1).max(1000);

const request = z.strictObject({
  model: z.string(),
  messages: z.array(message).min(1).max(10_000),
  tools: tools.nullish(),
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
  top_k: z
    .int()
    .min(-1)
    .max(2 ** 31 - 1)
    .nullish(),
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
            schema: z.record(z.string(), z.unknown()).nullish(),
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
  const parsed = request.safeParse(body);
  if (!parsed.success) throw refused(parsed.error);
  const given = parsed.data;
  const { max_tokens: older, max_completion_tokens: newer } = given;
  if (older != null && newer != null && older !== newer)
    throw new Refusal(
      400,
      `max_tokens is ${older} and max_completion_tokens is ${newer}; give one of them`,
      { param: "max_tokens" },
    );
  const maxTokens = newer ?? older;
  const { temperature, top_p: topP, top_k: topK, stop, seed, stream_options: streaming } = given;
  if (streaming != null && given.stream !== true)
    throw new Refusal(400, "stream_options is for streams: set stream to true, or leave it out", {
      param: "stream_options",
    });
  const { tool_choice: choice, parallel_tool_calls: parallel, response_format: format } = given;
  const offered = choice === "none" ? [] : (given.tools ?? []);
  const strict = offered.flatMap(({ strict, tool }) => (strict ? [tool.name] : []));
  return {
    model: given.model,
    messages: given.messages,
    ...(offered.length > 0 && { tools: offered.map(({ tool }) => tool) }),
    ...(choice != null && choice !== "auto" && choice !== "none" && { toolChoice: choice }),
    ...(strict.length > 0 && { strictTools: strict }),
    ...(parallel === false && offered.length > 0 && { oneCall: true }),
    ...(format != null && { format }),
    ...(maxTokens != null && { maxTokens }),
    ...(temperature != null && { temperature }),
    ...(topP != null && { topP }),
    ...(topK != null && { topK: Math.max(0, topK) }),
    ...(stop != null && { stop: [stop].flat() }),
    ...(seed != null && { seed }),
    stream: given.stream === true,
    streamUsage: streaming?.include_usage === true,
    logprobs: given.logprobs === true,
    tokenIds: given.return_token_ids === true,
  };
}

/** The first thing that is wrong, with its place. */
function refused({ issues }: z.ZodError): Refusal {
  const issue = deepest(issues[0]!);
  const unknown = issue.code === "unrecognized_keys" ? issue.keys[0]! : undefined;
  const param = placeOf([...issue.path, ...(unknown === undefined ? [] : [unknown])]);
  const problem = unknown === undefined ? issue.message : "is not supported; leave it out";
  return new Refusal(400, param === "" ? problem : `${param}: ${problem}`, {
    param: param === "" ? undefined : param,
  });
}

/** Of a union's complaints, the one that got furthest: what was meant. */
function deepest(issue: z.core.$ZodIssue): z.core.$ZodIssue {
  if (issue.code !== "invalid_union") return issue;
  const inner = issue.errors.flat().map((one) => deepest(one));
  const best = inner.reduce<z.core.$ZodIssue | undefined>(
    (furthest, one) => (one.path.length > (furthest?.path.length ?? 0) ? one : furthest),
    undefined,
  );
  return best === undefined ? issue : { ...best, path: [...issue.path, ...best.path] };
}

function placeOf(path: readonly PropertyKey[]): string {
  return path.reduce<string>(
    (text, key) =>
      typeof key === "number"
        ? `${text}[${key}]`
        : `${text}${text === "" ? "" : "."}${String(key)}`,
    "",
  );
}

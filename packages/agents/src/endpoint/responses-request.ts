/** Requests of OpenAI's responses API, as far as they can be obeyed. */
import { z } from "zod";
import type { AnswerFormat, ChatMessage, ChatRequest } from "../chat.js";
import type { Memory } from "./api.js";
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
} from "./fields.js";
import { type PartNames, Refusal } from "./refusal.js";

/** What the API calls what a session may refuse. */
export const RESPONSES_PARTS: PartNames = {
  toolChoice: "tool_choice",
  strictTools: "tools[].strict",
  oneCall: "parallel_tool_calls",
  format: "text.format",
};

/** A request in our words. */
export interface ResponsesRequest {
  readonly model: string;
  readonly stream: boolean;
  readonly tokenIds: boolean;
  readonly request: ChatRequest;
  /** The conversation, without its instructions. */
  readonly conversation: readonly ChatMessage[];
  /** Whether the client may refer to the answer. */
  readonly store: boolean;
  /** What an answer repeats of its request. */
  readonly repeated: object;
}

/** A part of an assistant's message, as an item of its own. */
type Part = Omit<ChatMessage, "role">;

const content = textContent("input_text", "output_text", "text");
const summary = z.array(z.looseObject({ text: z.string() }));

const item = z.preprocess(
  (value) => {
    if (typeof value !== "object" || value === null || (value as { type?: unknown }).type != null)
      return value;
    return { ...value, type: "role" in value ? "message" : "item_reference" };
  },
  z.discriminatedUnion("type", [
    z
      .looseObject({
        type: z.literal("message"),
        role: z.enum(["user", "assistant", "system", "developer"]),
        content,
      })
      .transform(({ role, content }): ChatMessage | { part: Part } => {
        if (role === "assistant") return { part: { content } };
        return { role: role === "user" ? role : "system", content };
      }),
    z
      .looseObject({
        type: z.literal("function_call"),
        call_id: z.string().min(1),
        name: z.string().min(1),
        arguments: z.string(),
      })
      .transform(({ call_id: id, name: tool, arguments: values }) => ({
        part: { content: "", calls: [{ id, tool, arguments: values }] } satisfies Part,
      })),
    z
      .looseObject({
        type: z.literal("function_call_output"),
        call_id: z.string().min(1),
        output: content,
      })
      .transform(
        ({ call_id: answers, output }): ChatMessage => ({ role: "tool", content: output, answers }),
      ),
    z
      .looseObject({
        type: z.literal("reasoning"),
        summary: summary.nullish(),
        content: summary.nullish(),
      })
      .transform(({ summary, content }) => {
        const reasoning = [...(content ?? summary ?? [])].map(({ text }) => text).join("\n");
        return { part: { content: "", ...(reasoning !== "" && { reasoning }) } satisfies Part };
      }),
    z
      .strictObject({ type: z.literal("item_reference"), id: z.string() })
      .transform(({ id }) => ({ reference: id })),
  ]),
);

const tool = z
  .strictObject({
    type: z.literal("function", { error: "only tools of type function are supported" }),
    name: toolName,
    description: z.string().nullish(),
    parameters: object.nullish(),
    strict: flag,
  })
  .transform(({ name, description, parameters, strict }) =>
    offered(name, description, parameters, strict),
  );

const format = z.discriminatedUnion("type", [
  z.strictObject({ type: z.literal("text") }).transform(() => undefined),
  z.strictObject({ type: z.literal("json_object") }).transform((): AnswerFormat => ({})),
  z
    .strictObject({
      type: z.literal("json_schema"),
      name: z.string(),
      schema: object,
      description: label,
      strict: label,
    })
    .transform(({ name, schema }): AnswerFormat => ({ name, schema })),
]);

const aSession = "use a session: /sessions/ID/v1";
const request = z.strictObject({
  model: z.string(),
  input: z.union([
    z.string().transform((content): z.output<typeof item>[] => [{ role: "user", content }]),
    z.array(item).min(1).max(10_000),
  ]),
  instructions: z.string().nullish(),
  previous_response_id: z.string().nullish(),
  tools: toolsOf(tool),
  tool_choice: z
    .union(
      [
        z.enum(["auto", "none", "required"]),
        z
          .strictObject({ type: z.literal("function"), name: z.string() })
          .transform(({ name }) => ({ tool: name })),
      ],
      { error: 'expected auto, none, required or {"type": "function", "name"}' },
    )
    .nullish(),
  parallel_tool_calls: flag,
  text: z
    .strictObject({ format: format.nullish(), verbosity: neutral(leaveOut, "medium") })
    .nullish(),
  reasoning: z.strictObject({ effort: neutral(leaveOut), summary: label }).nullish(),
  max_output_tokens: count,
  temperature: z.number().min(0).max(2).nullish(),
  top_p: z.number().min(0).max(1).nullish(),
  stream: flag,
  stream_options: z.strictObject({ include_obfuscation: neutral(leaveOut, false) }).nullish(),
  store: flag,
  // Reasoning is sent as it is, so there is nothing to encrypt.
  include: z
    .array(
      z.literal("reasoning.encrypted_content", {
        error: "is not supported; for tokens and log-probabilities, set return_token_ids",
      }),
    )
    .nullish(),
  return_token_ids: flag,
  background: neutral("answers are given at once", false),
  conversation: neutral(aSession),
  prompt: neutral("send the messages"),
  max_tool_calls: neutral("the client calls tools"),
  top_logprobs: neutral("only the sampled tokens have log-probabilities", 0),
  truncation: neutral("the client decides what to leave out", "disabled"),
  service_tier: neutral(leaveOut, "auto", "default"),
  user: label,
  metadata: label,
  safety_identifier: label,
  prompt_cache_key: label,
  prompt_cache_retention: label,
  client_metadata: label,
});

/** Reads the body of a request; what its client refers to is in the memory of its session. */
export function parseResponsesRequest(body: unknown, memory: Memory | undefined): ResponsesRequest {
  const given = parseBody(request, body);
  const { instructions, tool_choice: choice, parallel_tool_calls: parallel } = given;
  const { max_output_tokens: maxTokens, temperature, top_p: topP } = given;
  if (given.store === true && memory === undefined)
    throw new Refusal(400, `store: nothing is kept without a session; ${aSession}`, {
      param: "store",
    });
  const tools = choice === "none" ? [] : (given.tools ?? []);
  const strict = tools.flatMap(({ strict, tool }) => (strict ? [tool.name] : []));
  const format = given.text?.format;
  const conversation = [
    ...earlier(given.previous_response_id ?? undefined, memory),
    ...messagesOf(given.input, memory),
  ];
  return {
    model: given.model,
    stream: given.stream === true,
    tokenIds: given.return_token_ids === true,
    store: memory !== undefined && given.store !== false,
    conversation,
    request: {
      messages: [
        ...(instructions == null || instructions === ""
          ? []
          : [{ role: "system" as const, content: instructions }]),
        ...conversation,
      ],
      ...(tools.length > 0 && { tools: tools.map(({ tool }) => tool) }),
      ...(choice != null && choice !== "auto" && choice !== "none" && { toolChoice: choice }),
      ...(strict.length > 0 && { strictTools: strict }),
      ...(parallel === false && tools.length > 0 && { oneCall: true }),
      ...(format != null && { format }),
      ...(maxTokens != null && { maxTokens }),
      ...(temperature != null && { temperature }),
      ...(topP != null && { topP }),
    },
    repeated: repeatedOf(body as Readonly<Record<string, unknown>>),
  };
}

/** The conversation up to an earlier answer. */
function earlier(id: string | undefined, memory: Memory | undefined): readonly ChatMessage[] {
  if (id === undefined) return [];
  const found = memory?.conversations.get(id);
  if (found !== undefined) return found;
  const why =
    memory === undefined ? "nothing is kept without a session" : "there is no such answer";
  throw new Refusal(400, `previous_response_id: ${why}: ${id}; send the messages, or ${aSession}`, {
    param: "previous_response_id",
  });
}

/** Items as messages: what an assistant thought, said and called in a row is one message. */
function messagesOf(
  items: readonly z.output<typeof item>[],
  memory: Memory | undefined,
): readonly ChatMessage[] {
  const messages: ChatMessage[] = [];
  for (const one of items) {
    if ("role" in one) {
      messages.push(one);
      continue;
    }
    const part = "part" in one ? one.part : memory?.items.get(one.reference);
    if (part === undefined)
      throw new Refusal(
        400,
        `input: an item_reference to what is not kept: ${(one as { reference: string }).reference}; send store: false and the items, or ${aSession}`,
        { param: "input" },
      );
    const last = messages.at(-1);
    if (last?.role === "assistant") messages[messages.length - 1] = joined(last, part);
    else messages.push({ role: "assistant", ...part });
  }
  return messages;
}

function joined(message: ChatMessage, part: Part): ChatMessage {
  const calls = [...(message.calls ?? []), ...(part.calls ?? [])];
  const reasoning = [message.reasoning ?? "", part.reasoning ?? ""].filter((one) => one !== "");
  return {
    role: "assistant",
    content: message.content + part.content,
    ...(reasoning.length > 0 && { reasoning: reasoning.join("\n") }),
    ...(calls.length > 0 && { calls }),
  };
}

/** What clients expect to find in the answer. */
function repeatedOf(body: Readonly<Record<string, unknown>>): object {
  const { tools = [], tool_choice = "auto", instructions = null, metadata = {} } = body;
  const { temperature = null, top_p = null, max_output_tokens = null, text } = body;
  return {
    ...{ tools, tool_choice, instructions, metadata, temperature, top_p, max_output_tokens },
    parallel_tool_calls: body.parallel_tool_calls ?? true,
    previous_response_id: body.previous_response_id ?? null,
    text: text ?? { format: { type: "text" } },
    truncation: "disabled",
    reasoning: { effort: null, summary: null },
  };
}

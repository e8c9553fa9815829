/** Requests of Anthropic's messages API, as far as they can be obeyed. */
import { z } from "zod";
import type { AnswerFormat, ChatMessage, ChatRequest } from "../chat.js";
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
import type { PartNames } from "./refusal.js";

/** What the API calls what a session may refuse. */
export const MESSAGES_PARTS: PartNames = {
  toolChoice: "tool_choice",
  strictTools: "tools[].strict",
  oneCall: "tool_choice.disable_parallel_tool_use",
  format: "output_config.format",
};

/** A request in our words. */
export interface MessagesRequest {
  readonly model: string;
  readonly stream: boolean;
  readonly tokenIds: boolean;
  readonly request: ChatRequest;
}

const text = textContent("text");
/** Where to cache: it changes no answer. */
const cache = { cache_control: label };
const readsText = "the model reads text only";

const textBlock = z
  .looseObject({ type: z.literal("text"), text: z.string() })
  .transform(({ text }) => ({ text }));
const userBlock = z.discriminatedUnion(
  "type",
  [
    textBlock,
    z
      .strictObject({
        ...cache,
        type: z.literal("tool_result"),
        tool_use_id: z.string().min(1),
        content: text.nullish(),
        is_error: flag,
      })
      .transform(({ tool_use_id: answers, content }) => ({ answers, content: content ?? "" })),
  ],
  { error: `expected a block of type text or tool_result: ${readsText}` },
);
const assistantBlock = z.discriminatedUnion(
  "type",
  [
    textBlock,
    z
      .looseObject({
        type: z.literal("tool_use"),
        id: z.string().min(1),
        name: z.string().min(1),
        input: z.unknown(),
      })
      .transform(({ id, name, input }) => ({
        call: { id, tool: name, arguments: JSON.stringify(input ?? {}) },
      })),
    z
      .looseObject({ type: z.literal("thinking"), thinking: z.string() })
      .transform(({ thinking }) => ({ thinking })),
  ],
  { error: `expected a block of type text, tool_use or thinking: ${readsText}` },
);

const message = z.discriminatedUnion("role", [
  z
    .strictObject({ role: z.literal("user"), content: z.union([z.string(), z.array(userBlock)]) })
    .transform(({ content }) => ofUser(content)),
  z
    .looseObject({
      role: z.literal("assistant"),
      content: z.union([z.string(), z.array(assistantBlock)]),
    })
    .transform(({ content }) => [ofAssistant(content)]),
  // Some clients of the API put instructions between the messages.
  z
    .strictObject({ role: z.literal("system"), content: text })
    .transform(({ content }): ChatMessage[] => [{ role: "system", content }]),
]);

/** A user's blocks: results are messages of tools, and texts between them one of the user. */
function ofUser(content: string | readonly z.output<typeof userBlock>[]): readonly ChatMessage[] {
  if (typeof content === "string") return [{ role: "user", content }];
  const messages: ChatMessage[] = [];
  for (const block of content) {
    const last = messages.at(-1);
    if ("answers" in block) messages.push({ role: "tool", ...block });
    else if (last?.role === "user")
      messages[messages.length - 1] = { role: "user", content: `${last.content}\n${block.text}` };
    else messages.push({ role: "user", content: block.text });
  }
  return messages;
}

function ofAssistant(content: string | readonly z.output<typeof assistantBlock>[]): ChatMessage {
  if (typeof content === "string") return { role: "assistant", content };
  const calls = content.flatMap((block) => ("call" in block ? [block.call] : []));
  const reasoning = content.map((block) => ("thinking" in block ? block.thinking : "")).join("");
  return {
    role: "assistant",
    content: content.map((block) => ("text" in block ? block.text : "")).join(""),
    ...(reasoning !== "" && { reasoning }),
    ...(calls.length > 0 && { calls }),
  };
}

const tool = z
  .strictObject({
    ...cache,
    type: z.literal("custom", { error: "tools of the provider do not run here" }).nullish(),
    name: toolName,
    description: z.string().nullish(),
    input_schema: object,
    strict: flag,
    eager_input_streaming: label,
    input_examples: label,
  })
  .transform(({ name, description, input_schema: parameters, strict }) =>
    offered(name, description, parameters, strict),
  );

const oneCall = { disable_parallel_tool_use: flag };
const asked = {
  model: z.string(),
  messages: z.array(message).min(1).max(10_000),
  system: text.nullish(),
  tools: toolsOf(tool),
  tool_choice: z
    .discriminatedUnion("type", [
      z.strictObject({ type: z.literal("auto"), ...oneCall }),
      z.strictObject({ type: z.literal("none") }),
      z.strictObject({ type: z.literal("any"), ...oneCall }),
      z.strictObject({ type: z.literal("tool"), name: z.string(), ...oneCall }),
    ])
    .nullish(),
  thinking: neutral("the model thinks as it learnt to", { type: "disabled" }),
  cache_control: label,
  output_config: z
    .strictObject({
      effort: neutral(leaveOut),
      format: z
        .strictObject({ type: z.literal("json_schema"), schema: object })
        .transform(({ schema }): AnswerFormat => ({ schema }))
        .nullish(),
    })
    .nullish(),
};

const request = z.strictObject({
  ...asked,
  max_tokens: count,
  stream: flag,
  temperature: z.number().min(0).max(2).nullish(),
  top_p: z.number().min(0).max(1).nullish(),
  top_k: topK,
  stop_sequences: z.array(z.string().min(1).max(1000)).max(16).nullish(),
  return_token_ids: flag,
  context_management: neutral("the client decides what to leave out"),
  container: neutral(leaveOut),
  mcp_servers: neutral("the client calls tools", []),
  service_tier: neutral(leaveOut, "auto", "standard_only"),
  metadata: label,
});
// Clients count with fields that change no number.
const counted = z.looseObject(asked);

/** Reads the body of a request. */
export function parseMessagesRequest(body: unknown): MessagesRequest {
  const given = parseBody(request, body);
  const { temperature, top_p: topP, stop_sequences: stop, max_tokens: maxTokens } = given;
  return {
    model: given.model,
    stream: given.stream === true,
    tokenIds: given.return_token_ids === true,
    request: {
      ...questionOf(given),
      ...(maxTokens != null && { maxTokens }),
      ...(temperature != null && { temperature }),
      ...(topP != null && { topP }),
      ...(given.top_k != null && { topK: Math.max(0, given.top_k) }),
      ...(stop != null && { stop }),
    },
  };
}

/** Reads a request to count the tokens of a prompt. */
export function parseCountRequest(body: unknown): { model: string; request: ChatRequest } {
  const given = parseBody(counted, body);
  return { model: given.model, request: questionOf(given) };
}

function questionOf({
  system,
  messages,
  tools,
  tool_choice: choice,
  output_config: output,
}: z.output<typeof counted>): ChatRequest {
  const list = choice?.type === "none" ? [] : (tools ?? []);
  const strict = list.flatMap(({ strict, tool }) => (strict ? [tool.name] : []));
  const single = choice != null && choice.type !== "none" && choice.disable_parallel_tool_use;
  return {
    messages: [
      ...(system == null || system === "" ? [] : [{ role: "system" as const, content: system }]),
      ...messages.flat(),
    ],
    ...(list.length > 0 && { tools: list.map(({ tool }) => tool) }),
    ...(choice?.type === "any" && { toolChoice: "required" as const }),
    ...(choice?.type === "tool" && { toolChoice: { tool: choice.name } }),
    ...(strict.length > 0 && { strictTools: strict }),
    ...(single === true && { oneCall: true }),
    ...(output?.format != null && { format: output.format }),
  };
}

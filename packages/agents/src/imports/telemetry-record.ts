/**
 * Telemetry of agents, as OpenTelemetry's exporters and its collector write it (OTLP in JSON): spans
 * of calls of a model, by the AI SDK or by OpenTelemetry's conventions for generative AI. A
 * conversation's calls are spans of one trace, each with all messages so far; its end is the
 * transcript, in which each answer is imitated once.
 */
import { isRecord } from "@pawl/core/text/tool.js";
import { z } from "zod";
import { messagesOf, toolOf } from "../ai-sdk-request.js";
import type { ModelMessage, ModelTool } from "../ai-sdk-types.js";
import type { ChatCall, ChatMessage } from "../chat.js";
import { beginsWith } from "../same-messages.js";
import { SessionError } from "../session-error.js";
import { checkOrder, readTools } from "./chat-record.js";
import { argumentsOf, recordOf, type Transcript, Unreadable } from "./transcript.js";

const attribute = z.looseObject({ key: z.string(), value: z.unknown() });
const spanSchema = z.looseObject({
  traceId: z.string(),
  name: z.string(),
  startTimeUnixNano: z.union([z.string(), z.number()]).default("0"),
  attributes: z.array(attribute).default([]),
  status: z.looseObject({ code: z.union([z.number(), z.string()]).optional() }).optional(),
});
const recordSchema = z.looseObject({
  resourceSpans: z.array(
    z.looseObject({
      scopeSpans: z.array(z.looseObject({ spans: z.array(spanSchema).default([]) })).default([]),
    }),
  ),
});

/** A call of the model that a span tells of. */
export interface TracedCall {
  readonly trace: string;
  readonly where: string;
  readonly start: bigint;
  readonly messages: readonly ChatMessage[];
  readonly answer: ChatMessage;
  readonly tools: Transcript["tools"];
  /** It was cut off. */
  readonly isCut: boolean;
}

type OnUnreadable = (kind: string, where: string) => void;

/** Whether a record is a batch of spans. */
export function isTelemetryRecord(value: unknown): boolean {
  return isRecord(value) && Array.isArray(value.resourceSpans);
}

/** The calls among the spans of a record; those that cannot be read are reported. */
export function tracedCalls(
  value: unknown,
  where: string,
  onUnreadable: OnUnreadable,
): readonly TracedCall[] {
  const spans = recordOf(recordSchema, value).resourceSpans.flatMap(({ scopeSpans }) =>
    scopeSpans.flatMap((scope) => scope.spans),
  );
  return spans.flatMap(({ traceId, name, startTimeUnixNano, attributes, status }) => {
    const given = new Map(attributes.map((one) => [one.key, plain(one.value)] as const));
    const read = readerOf(name, given);
    if (read === undefined) return [];
    try {
      if (status?.code === 2 || status?.code === "STATUS_CODE_ERROR")
        throw new Unreadable("a call that failed");
      const start = BigInt(/^\d+$/.exec(String(startTimeUnixNano))?.[0] ?? 0);
      return [{ trace: traceId, where, start, ...read(given) }];
    } catch (error) {
      if (!(error instanceof Unreadable || error instanceof SessionError)) throw error;
      onUnreadable(error.message, where);
      return [];
    }
  });
}

/** The conversations of these calls: one for each that no other call continues. */
export function tracedTranscripts(
  calls: readonly TracedCall[],
  onUnreadable: OnUnreadable,
): readonly Transcript[] {
  const traces = new Map<string, TracedCall[]>();
  for (const call of calls) traces.set(call.trace, [...(traces.get(call.trace) ?? []), call]);
  return [...traces].flatMap(([task, inTrace]) => {
    const whole = inTrace
      .sort((a, b) => (a.start < b.start ? -1 : Number(a.start > b.start)))
      .map((call) => ({ call, messages: [...call.messages, call.answer] }));
    const taken = new Set<TracedCall>();
    return whole.flatMap(({ call: leaf, messages }): readonly Transcript[] => {
      if (whole.some(({ call }) => beginsWith(call.messages, messages))) return [];
      const own = messages.map(() => false);
      for (const { call, messages: beginning } of whole) {
        if (taken.has(call) || !beginsWith(messages, beginning)) continue;
        own[call.messages.length] = !call.isCut;
        taken.add(call);
      }
      const { where, tools } = leaf;
      try {
        checkOrder(messages);
      } catch (error) {
        onUnreadable((error as Unreadable).message, where);
        return [];
      }
      return [
        {
          ...{ where, task, split: "train", type: "any", policy: "imported" },
          ...{ tools, messages, own, return: 0, success: false },
        },
      ];
    });
  });
}

type Attributes = ReadonlyMap<string, unknown>;
type Read = (given: Attributes) => Pick<TracedCall, "messages" | "answer" | "tools" | "isCut">;

/** How a span is read; undefined for spans that are no call of a model. */
function readerOf(name: string, given: Attributes): Read | undefined {
  const operation = String(given.get("ai.operationId") ?? name);
  if (/^ai\.(generate|stream)(Text|Object)\.do(Generate|Stream)/.test(operation)) return ofAiSdk;
  // The AI SDK's outer spans have these names too, and no messages.
  if (operation.startsWith("ai.")) return undefined;
  const kind = given.get("gen_ai.operation.name");
  if (given.has("gen_ai.output.messages") || kind === "chat") return ofConventions;
  return undefined;
}

const modelPart = z.discriminatedUnion("type", [
  z.looseObject({ type: z.literal("text"), text: z.string() }),
  z.looseObject({ type: z.literal("reasoning"), text: z.string() }),
  z.looseObject({ type: z.literal("tool-call"), toolCallId: z.string(), toolName: z.string() }),
  z.looseObject({
    type: z.literal("tool-result"),
    toolCallId: z.string(),
    output: z.looseObject({ type: z.string() }),
  }),
  // Refused by its name.
  z.looseObject({ type: z.enum(["file", "tool-approval-response"]) }),
]);
const modelMessage = z.union([
  z.looseObject({ role: z.literal("system"), content: z.string() }),
  z.looseObject({ role: z.enum(["user", "assistant", "tool"]), content: z.array(modelPart) }),
]);
const modelTool = z.looseObject({ type: z.literal("function"), name: z.string() });
const modelCall = z.looseObject({
  toolCallId: z.string(),
  toolName: z.string(),
  input: z.unknown().optional(),
});

/** A span of the AI SDK, with the prompt that its model was given. */
function ofAiSdk(given: Attributes): ReturnType<Read> {
  const asked = given.get("ai.prompt.messages");
  const said = given.get("ai.response.text") ?? given.get("ai.response.object");
  const called = given.get("ai.response.toolCalls");
  if (asked === undefined || (said === undefined && called === undefined))
    throw new Unreadable("a call without its messages or its answer");
  const reasoning = given.get("ai.response.reasoning");
  const tools = listOf(given.get("ai.prompt.tools") ?? []).map(
    (one) => recordOf(modelTool, jsonOf(one)) as unknown as ModelTool,
  );
  return {
    messages: listOf(asked).flatMap((one) =>
      messagesOf(recordOf(modelMessage, one) as unknown as ModelMessage),
    ),
    answer: answerOf(
      typeof said === "string" ? said : "",
      typeof reasoning === "string" ? reasoning : "",
      listOf(called ?? []).map((one) => {
        const { toolCallId: id, toolName, input } = recordOf(modelCall, one);
        return callOf(id, toolName, input);
      }),
    ),
    tools: tools.length > 0 ? tools.map(toolOf) : undefined,
    isCut: given.get("ai.response.finishReason") === "length",
  };
}

const part = z.looseObject({
  type: z.string(),
  content: z.unknown().optional(),
  id: z.string().nullish(),
  name: z.string().optional(),
  arguments: z.unknown().optional(),
  response: z.unknown().optional(),
});
const conventional = z.looseObject({
  role: z.string(),
  parts: z.array(part),
  finish_reason: z.string().optional(),
});

/** A span by OpenTelemetry's conventions for generative AI (1.37 and later). */
function ofConventions(given: Attributes): ReturnType<Read> {
  const asked = given.get("gen_ai.input.messages");
  const said = given.get("gen_ai.output.messages");
  if (asked === undefined || said === undefined)
    throw new Unreadable("a call without its messages or its answer");
  const system = listOf(given.get("gen_ai.system_instructions") ?? []).map((one) =>
    textOf(recordOf(part, one)),
  );
  const choices = listOf(said).map((one) => recordOf(conventional, one));
  if (choices.length !== 1) throw new Unreadable(`a call with ${choices.length} answers`);
  const [answer] = choices.flatMap(conventionalMessages);
  if (answer?.role !== "assistant") throw new Unreadable("an answer that is not the assistant's");
  return {
    messages: [
      ...(system.length > 0 ? [{ role: "system" as const, content: system.join("\n") }] : []),
      ...listOf(asked).flatMap((one) => conventionalMessages(recordOf(conventional, one))),
    ],
    answer,
    tools: readTools(jsonOf(given.get("gen_ai.tool.definitions"))),
    isCut: choices[0]!.finish_reason === "length",
  };
}

function conventionalMessages({
  role,
  parts,
}: z.output<typeof conventional>): readonly ChatMessage[] {
  if (role !== "system" && role !== "user" && role !== "assistant" && role !== "tool")
    throw new Unreadable(`unknown role "${role}"`);
  if (role === "tool")
    return parts.map((one) => {
      if (one.type !== "tool_call_response") throw otherPart(one.type);
      const content = one.response ?? "";
      return {
        role,
        content: typeof content === "string" ? content : JSON.stringify(content),
        ...(one.id != null && { answers: one.id }),
      };
    });
  if (role !== "assistant") return [{ role, content: parts.map(textOf).join("\n") }];
  const of = (type: string) => parts.filter((one) => one.type === type);
  const other = parts.find(({ type }) => !["text", "reasoning", "tool_call"].includes(type));
  if (other !== undefined) throw otherPart(other.type);
  return [
    answerOf(
      of("text").map(textOf).join("\n"),
      of("reasoning").map(contentOf).join("\n"),
      of("tool_call").map(({ id, name, arguments: values }, at) => {
        if (name === undefined) throw new Unreadable("a tool call without a name");
        return callOf(id ?? `call${at}`, name, values);
      }),
    ),
  ];
}

const otherPart = (type: string) => new Unreadable(`a message with a part of type "${type}"`);

function textOf(one: z.output<typeof part>): string {
  if (one.type !== "text") throw otherPart(one.type);
  return contentOf(one);
}

function contentOf({ content }: z.output<typeof part>): string {
  if (typeof content === "string") return content;
  throw new Unreadable("a part without a text");
}

function answerOf(content: string, reasoning: string, calls: readonly ChatCall[]): ChatMessage {
  return {
    ...{ role: "assistant", content },
    ...(reasoning !== "" && { reasoning }),
    ...(calls.length > 0 && { calls }),
  };
}

function callOf(id: string, tool: string, given: unknown): ChatCall {
  const text = typeof given === "string" ? given : JSON.stringify(given ?? {});
  argumentsOf(text);
  return { id, tool, arguments: text };
}

/** Structured attributes are written as JSON where an exporter has only texts. */
function jsonOf(value: unknown): unknown {
  if (typeof value !== "string") return value;
  try {
    return JSON.parse(value);
  } catch {
    throw new Unreadable("an attribute that is not JSON");
  }
}

function listOf(value: unknown): readonly unknown[] {
  const list = jsonOf(value);
  if (Array.isArray(list)) return list;
  throw new Unreadable("an attribute that is no list");
}

/** An attribute's value as OTLP writes it; its depth is that of the record, which was parsed. */
function plain(value: unknown): unknown {
  if (!isRecord(value)) return undefined;
  if (isRecord(value.arrayValue))
    return Array.isArray(value.arrayValue.values) ? value.arrayValue.values.map(plain) : [];
  if (isRecord(value.kvlistValue)) {
    const { values } = value.kvlistValue;
    const entries = Array.isArray(values) ? values.filter(isRecord) : [];
    return Object.fromEntries(entries.map((one) => [String(one.key), plain(one.value)]));
  }
  return value.stringValue ?? value.boolValue ?? value.intValue ?? value.doubleValue;
}

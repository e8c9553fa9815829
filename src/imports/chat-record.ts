/** Plain chat records: OpenAI's messages, or ShareGPT's turns, with the agent as the assistant. */
import { z } from "zod";
import type { ChatCall, ChatMessage } from "../agents/chat.js";
import { isRecord, type Tool } from "../text/tool.js";
import { splitReasoning } from "../text/tool-calls.js";
import { argumentsOf, recordOf, type Transcript, Unreadable } from "./transcript.js";

const parts = z.array(z.looseObject({ type: z.string(), text: z.string().optional() }));
const content = z.union([z.string(), parts, z.null()]).optional();

const callSchema = z.looseObject({
  id: z.string().optional(),
  // OpenAI nests the name and its arguments; verifiers does not.
  function: z.looseObject({ name: z.string(), arguments: z.unknown().optional() }).optional(),
  name: z.string().optional(),
  arguments: z.unknown().optional(),
});

/** A message in OpenAI's form. */
export const messageSchema = z.looseObject({
  role: z.string(),
  content,
  reasoning_content: z.string().nullish(),
  tool_calls: z.array(callSchema).nullish(),
  tool_call_id: z.string().nullish(),
});

const turnSchema = z.looseObject({ from: z.string(), value: z.string() });

const recordSchema = z.looseObject({
  messages: z.array(messageSchema).optional(),
  conversations: z.array(turnSchema).optional(),
  system: z.string().optional(),
  tools: z.unknown().optional(),
  id: z.union([z.string(), z.number()]).optional(),
  environment: z.string().optional(),
  env: z.string().optional(),
  task: z.string().optional(),
  split: z.string().optional(),
  type: z.string().optional(),
  policy: z.string().optional(),
  return: z.number().optional(),
  reward: z.number().optional(),
  success: z.union([z.boolean(), z.number()]).optional(),
});

/** Reads a record; one that is none throws `Unreadable`. */
export function chatTranscript(value: unknown, where: string): Transcript {
  const record = recordOf(recordSchema, value);
  const turns = record.messages?.map(readMessage) ?? record.conversations?.map(readTurn);
  if (turns === undefined) throw new Unreadable("neither messages nor conversations");
  const system = record.system ?? "";
  const messages: readonly ChatMessage[] =
    system === "" || turns[0]?.role === "system"
      ? turns
      : [{ role: "system", content: system }, ...turns];
  checkOrder(messages);
  const env = record.environment ?? record.env;
  const worth = record.return ?? record.reward ?? 0;
  return {
    where,
    ...(env !== undefined && { env }),
    task: record.task ?? (record.id === undefined ? where : String(record.id)),
    split: record.split ?? "train",
    type: record.type ?? "any",
    policy: record.policy ?? "imported",
    tools: readTools(record.tools),
    messages,
    own: messages.map(({ role }) => role === "assistant"),
    return: worth,
    success: record.success === undefined ? worth >= 1 : Number(record.success) === 1,
  };
}

const ROLES: Readonly<Record<string, ChatMessage["role"]>> = {
  system: "system",
  developer: "system",
  user: "user",
  human: "user",
  assistant: "assistant",
  gpt: "assistant",
  function_call: "assistant",
  tool: "tool",
  function: "tool",
  observation: "user",
};

function roleOf(role: string): ChatMessage["role"] {
  const ours = Object.hasOwn(ROLES, role) ? ROLES[role] : undefined;
  if (ours === undefined) throw new Unreadable(`unknown role "${role}"`);
  return ours;
}

/** Reads a message in OpenAI's form. */
export function readMessage(message: z.output<typeof messageSchema>): ChatMessage {
  const role = roleOf(message.role);
  const calls = (message.tool_calls ?? []).map(readCall);
  const reasoning = message.reasoning_content ?? undefined;
  return {
    role,
    content: textOf(message.content),
    ...(reasoning !== undefined && { reasoning }),
    ...(calls.length > 0 && { calls }),
    ...(role === "tool" && message.tool_call_id != null && { answers: message.tool_call_id }),
  };
}

/** Reasoning in a turn's text is part of what was written: it is split off and written again. */
function readTurn({ from, value }: z.output<typeof turnSchema>): ChatMessage {
  const role = roleOf(from);
  if (role !== "assistant") return { role, content: value };
  const { reasoning, text } = splitReasoning(value);
  return reasoning === undefined ? { role, content: value } : { role, content: text, reasoning };
}

function readCall(call: z.output<typeof callSchema>, at: number): ChatCall {
  const tool = call.function?.name ?? call.name;
  if (tool === undefined) throw new Unreadable("a tool call without a name");
  const given = call.function === undefined ? call.arguments : call.function.arguments;
  const text = typeof given === "string" ? given : JSON.stringify(given ?? {});
  argumentsOf(text);
  return { id: call.id ?? `call${at}`, tool, arguments: text };
}

function textOf(given: z.output<typeof content>): string {
  if (given === null || given === undefined) return "";
  if (typeof given === "string") return given;
  const other = given.find(({ type }) => type !== "text");
  if (other !== undefined) throw new Unreadable(`a message with a part of type "${other.type}"`);
  return given.map(({ text = "" }) => text).join("\n");
}

/** Tools in OpenAI's form, or bare, as a list or as JSON text. */
export function readTools(given: unknown): readonly Tool[] | undefined {
  let value = given;
  if (typeof value === "string" && value !== "") {
    try {
      value = JSON.parse(value);
    } catch {
      throw new Unreadable("tools that are not JSON");
    }
  }
  if (!Array.isArray(value) || value.length === 0) return undefined;
  return value.map((one: unknown) => {
    const tool = isRecord(one) && isRecord(one.function) ? one.function : one;
    if (!isRecord(tool) || typeof tool.name !== "string")
      throw new Unreadable("a tool without a name");
    const { name, description, parameters } = tool;
    return {
      name,
      description: typeof description === "string" ? description : "",
      parameters: isRecord(parameters) ? parameters : { type: "object", properties: {} },
    };
  });
}

/** Refuses conversations that no chat template takes. */
export function checkOrder(messages: readonly ChatMessage[]): void {
  if (!messages.some(({ role }) => role === "assistant"))
    throw new Unreadable("no message of the assistant");
  if (messages.findIndex(({ role }) => role === "assistant") === 0)
    throw new Unreadable("the assistant speaks first");
  if (messages.some(({ role }, at) => role === "system" && at > 0))
    throw new Unreadable("a system message that is not the first");
}

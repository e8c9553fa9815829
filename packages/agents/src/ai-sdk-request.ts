/**
 * A call of the AI SDK as a question to the model. What a model of text cannot read, and a choice
 * of tools that it cannot be made to keep to, are refused; other settings that are not obeyed are
 * reported as warnings, as the SDK's providers do.
 */
import { isRecord, type Tool } from "@pawl/core/text/tool.js";
import type {
  ModelCall,
  ModelMessage,
  ModelPart,
  ModelTool,
  ModelWarning,
  ToolOutput,
} from "./ai-sdk-types.js";
import type { AnswerFormat, ChatMessage, ChatRequest } from "./chat.js";
import { SessionError } from "./session-error.js";

/** The question, and the settings that it does not obey. */
export function requestOf(
  call: ModelCall,
  fixed: boolean,
): { readonly request: ChatRequest; readonly warnings: ModelWarning[] } {
  const { prompt, maxOutputTokens, temperature, topP, topK, seed, stopSequences } = call;
  const { tools = [], toolChoice } = call;
  const offered = toolChoice?.type === "none" ? [] : tools.map(toolOf);
  const strict = tools.flatMap((tool) =>
    tool.type === "function" && tool.strict === true && offered.length > 0 ? [tool.name] : [],
  );
  const sampling = { temperature, topP, topK, seed };
  return {
    request: {
      messages: prompt.flatMap(messagesOf),
      ...(offered.length > 0 && { tools: offered }),
      ...(toolChoice?.type === "required" && { toolChoice: "required" as const }),
      ...(toolChoice?.type === "tool" && { toolChoice: { tool: toolChoice.toolName } }),
      ...(strict.length > 0 && { strictTools: strict }),
      ...(call.responseFormat?.type === "json" && { format: formatOf(call.responseFormat.schema) }),
      ...(maxOutputTokens !== undefined && { maxTokens: maxOutputTokens }),
      ...(stopSequences !== undefined && { stop: stopSequences }),
      ...(given(sampling) as Pick<ChatRequest, keyof typeof sampling>),
    },
    warnings: warningsOf(call, fixed ? sampling : {}),
  };
}

function given(settings: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  return Object.fromEntries(Object.entries(settings).filter(([, value]) => value !== undefined));
}

function warningsOf(
  { presencePenalty, frequencyPenalty }: ModelCall,
  overruled: Readonly<Record<string, unknown>>,
): ModelWarning[] {
  const warn =
    (details: string) =>
    (feature: string): ModelWarning => ({
      type: "unsupported",
      feature,
      details,
    });
  return [
    ...Object.keys(given({ presencePenalty, frequencyPenalty })).map(
      warn("answers are sampled from the model's own distribution"),
    ),
    ...Object.keys(given(overruled)).map(warn("the run decides how answers are sampled")),
  ];
}

/** A schema as the answer's format; without one, any object. */
const formatOf = (schema: unknown): AnswerFormat => (isRecord(schema) ? { schema } : {});

/** A tool in the SDK's words. */
export function toolOf(tool: ModelTool): Tool {
  if (tool.type === "provider")
    throw new SessionError(`tool ${tool.name}: a provider's own tool does not run here`);
  const { name, description = "", inputSchema } = tool;
  const { $schema: _, ...parameters } = inputSchema as Record<string, unknown>;
  return { name, description, parameters };
}

/** A message in the SDK's words; a tool's has one for each result. */
export function messagesOf(message: ModelMessage): readonly ChatMessage[] {
  if (message.role === "system") return [{ role: "system", content: message.content }];
  const { role, content } = message;
  if (role === "tool")
    return content.map((part): ChatMessage => {
      if (part.type !== "tool-result") return refused(role, part);
      return { role, content: outputText(part.output), answers: part.toolCallId };
    });
  const texts = { text: "", reasoning: "" };
  const calls: NonNullable<ChatMessage["calls"]>[number][] = [];
  for (const part of content)
    if (part.type === "text" || part.type === "reasoning") texts[part.type] += part.text;
    else if (part.type === "tool-call" && role === "assistant")
      calls.push({
        id: part.toolCallId,
        tool: part.toolName,
        arguments: JSON.stringify(part.input ?? {}),
      });
    else refused(role, part);
  return [
    {
      role,
      content: texts.text,
      ...(texts.reasoning !== "" && { reasoning: texts.reasoning }),
      ...(calls.length > 0 && { calls }),
    },
  ];
}

function refused(role: string, { type }: Pick<ModelPart, "type">): never {
  throw new SessionError(`a message of the ${role} has a part ${type}: the model reads text only`);
}

function outputText(output: ToolOutput): string {
  switch (output.type) {
    case "text":
    case "error-text":
      return output.value;
    case "json":
    case "error-json":
      return JSON.stringify(output.value);
    case "execution-denied":
      return output.reason ?? "The call was denied.";
    case "content":
      return output.value
        .map(({ type, text }) => text ?? refused("tool", { type: type as ModelPart["type"] }))
        .join("\n");
  }
}

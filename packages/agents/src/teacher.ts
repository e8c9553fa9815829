/**
 * A teacher: a stronger model behind an OpenAI-compatible server, which answers an agent in the
 * place of the model that is to learn. What it says is written as that model writes (`session.ts`);
 * its reasoning, which servers report beside an answer or not at all, is not imitated.
 */
import {
  askEndpoint,
  type ChatEndpoint,
  type EndpointMessage,
} from "@pawl/core/envs/chat-endpoint.js";
import { UserError } from "@pawl/core/errors.js";
import { isRecord } from "@pawl/core/text/tool.js";
import type { ChatMessage, ChatRequest } from "./chat.js";
import type { Author } from "./session.js";

/** A teacher, and what it was asked so far. */
export interface Teacher {
  readonly author: Author;
  /** The answers it gave, and their tokens as its server counts them. */
  readonly used: {
    readonly answers: number;
    readonly read: number;
    readonly written: number;
    /** Answers whose tokens the server did not count. */
    readonly uncounted: number;
  };
}

/** A teacher at this server. */
export function createTeacher(endpoint: ChatEndpoint): Teacher {
  const used = { answers: 0, read: 0, written: 0, uncounted: 0 };
  return {
    used,
    async author(request, { maxTokens, seed, signal }) {
      const { tools = [], strictTools = [] } = request;
      const { content, calls, usage } = await askEndpoint(
        endpoint,
        request.messages.map(endpointMessage),
        {
          tools: tools.map((tool) => ({
            ...tool,
            ...(strictTools.includes(tool.name) && { strict: true }),
          })),
          ...{ seed, signal, fields: { max_tokens: maxTokens, ...askedFor(request) } },
        },
      );
      used.answers++;
      if (usage === undefined) used.uncounted++;
      used.read += usage?.read ?? 0;
      used.written += usage?.written ?? 0;
      return {
        role: "assistant",
        content,
        ...(calls.length > 0 && {
          // A session gives calls ids of its own.
          calls: calls.map((call) => ({
            id: call.name,
            tool: call.name,
            arguments: readArguments(call),
          })),
        }),
      };
    },
  };
}

function readArguments(call: { readonly name: string; readonly arguments: string }): string {
  let values: unknown;
  try {
    values = JSON.parse(call.arguments === "" ? "{}" : call.arguments);
  } catch {
    // Refused below.
  }
  if (isRecord(values)) return JSON.stringify(values);
  throw new UserError(
    `the teacher called ${call.name} with arguments that are no JSON object: ${call.arguments.slice(0, 100)}`,
  );
}

function endpointMessage({ role, content, calls = [], answers }: ChatMessage): EndpointMessage {
  return {
    role,
    content: content === "" && calls.length > 0 ? null : content,
    ...(calls.length > 0 && {
      tool_calls: calls.map(({ id, tool, arguments: values }) => ({
        id,
        type: "function" as const,
        function: { name: tool, arguments: values },
      })),
    }),
    ...(answers !== undefined && { tool_call_id: answers }),
  };
}

/** What an agent asks of an answer, in the API's words. */
function askedFor({
  toolChoice,
  oneCall,
  format,
  stop = [],
}: ChatRequest): Readonly<Record<string, unknown>> {
  return {
    ...(toolChoice !== undefined && {
      tool_choice:
        toolChoice === "required"
          ? toolChoice
          : { type: "function", function: { name: toolChoice.tool } },
    }),
    ...(oneCall === true && { parallel_tool_calls: false }),
    ...(format !== undefined && {
      response_format:
        format.schema === undefined
          ? { type: "json_object" }
          : {
              type: "json_schema",
              json_schema: { name: format.name ?? "answer", schema: format.schema, strict: true },
            },
    }),
    ...(stop.length > 0 && { stop }),
  };
}

/** Messages in the form of OpenAI's chat completions, which most tools read. */
import type { ChatMessage } from "../agents/chat.js";
import type { Tool } from "../text/tool.js";

/** A message as JSON. */
export interface MessageJson {
  readonly role: string;
  readonly content: string;
  readonly reasoning_content?: string;
  readonly tool_calls?: readonly {
    readonly id: string;
    readonly type: "function";
    readonly function: { readonly name: string; readonly arguments: string };
  }[];
  readonly tool_call_id?: string;
}

/** One message. */
export function messageJson({
  role,
  content,
  reasoning,
  calls,
  answers,
}: ChatMessage): MessageJson {
  return {
    role,
    content,
    reasoning_content: reasoning,
    tool_calls: calls?.map(({ id, tool, arguments: text }) => ({
      id,
      type: "function",
      function: { name: tool, arguments: text },
    })),
    tool_call_id: answers,
  };
}

/** A tool's declaration. */
export function toolJson({ name, description, parameters }: Tool): unknown {
  return { type: "function", function: { name, description, parameters } };
}

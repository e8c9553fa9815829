/**
 * Whether a client's messages are those of an earlier call. Clients write answers anew: they parse
 * arguments and print them again, leave out empty texts, and often drop the reasoning. So answers
 * are compared by what they say and call.
 */
import { isDeepStrictEqual } from "node:util";
import type { ChatCall, ChatMessage } from "./chat.js";

/** Whether the messages begin with these. */
export function beginsWith(
  messages: readonly ChatMessage[],
  beginning: readonly ChatMessage[],
): boolean {
  return (
    messages.length >= beginning.length &&
    // Conversations differ at their ends, so the last messages are compared first.
    beginning.findLastIndex((message, at) => !isSameMessage(message, messages[at]!)) < 0
  );
}

/** Whether two messages say the same. */
export function isSameMessage(a: ChatMessage, b: ChatMessage): boolean {
  if (a === b) return true;
  if (a.role !== b.role || a.answers !== b.answers) return false;
  if (a.role !== "assistant") return a.content === b.content;
  const [calls, others] = [a.calls ?? [], b.calls ?? []];
  return (
    a.content.trim() === b.content.trim() &&
    calls.length === others.length &&
    calls.every((call, at) => isSameCall(call, others[at]!))
  );
}

function isSameCall(a: ChatCall, b: ChatCall): boolean {
  return (
    a.id === b.id &&
    a.tool === b.tool &&
    (a.arguments === b.arguments || isDeepStrictEqual(parsed(a.arguments), parsed(b.arguments)))
  );
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

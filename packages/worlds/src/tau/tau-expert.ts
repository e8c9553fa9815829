/**
 * The expert: it makes the reference solution's calls in order, asks the user for those that are
 * the user's, tells what has to be told, and asks whether there is anything else until the user
 * ends the conversation.
 */
import type { ToolCall } from "@pawl/core/text/tool.js";
import { type Conversation, DONE, RESPOND } from "./conversation.js";
import { jsonText, plainValue } from "./json.js";
import type { Call } from "./tasks.js";
import { equal } from "./value.js";

/** The expert's next call. */
export function nextCall({ about, messages }: Conversation): ToolCall {
  const { task, solo } = about;
  const made = messages
    .slice(task.history.length)
    .flatMap((one) => (one.role === "tool" ? [] : one.calls));
  const say = (content: string): ToolCall => ({ tool: RESPOND, arguments: { content } });
  let done = 0;
  for (const call of made) if (isSame(call, task.reference[done])) done++;
  const next = task.reference[done];
  const words = messages.flatMap((one) =>
    one.role === "assistant" && one.content !== null
      ? [one.content.toLowerCase().replaceAll(",", "")]
      : [],
  );
  const untold = task.communicate.filter(
    (one) => !words.some((text) => text.includes(one.toLowerCase())),
  );
  const summary = `Here is what I found: ${untold.join("; ")}.`;
  // A transfer may end the conversation, so everything is said before.
  if (next?.name === "transfer_to_human_agents" && untold.length > 0 && !solo) return say(summary);
  if (next !== undefined) {
    if (next.side === "assistant" || solo) return callOf(next);
    return say(`Please do this on your side: ${next.name} ${jsonText(next.given)}`);
  }
  if (solo) return { tool: DONE, arguments: {} };
  return say(untold.length > 0 ? summary : "Is there anything else I can help you with?");
}

function isSame(made: Call, reference: Call | undefined): boolean {
  return (
    reference !== undefined && made.name === reference.name && equal(made.given, reference.given)
  );
}

function callOf({ name, given }: Call): ToolCall {
  const values = plainValue(given) as ToolCall["arguments"];
  return { tool: name, arguments: values, written: jsonText(given) };
}

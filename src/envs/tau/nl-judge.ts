/** Natural-language assertions of τ², checked by a chat model over the whole conversation. */
import { askEndpoint, type ChatEndpoint } from "../chat-endpoint.js";
import { EnvError } from "../env.js";
import { jsonText } from "./json.js";
import type { Message } from "./tasks.js";

/** Whether all assertions hold. */
export async function judgeAssertions(
  endpoint: ChatEndpoint,
  assertions: readonly string[],
  messages: readonly Message[],
  signal?: AbortSignal,
): Promise<boolean> {
  const content = [
    "Below is a conversation of a service agent and a user, with the tools that were called, and statements about it.",
    "Say for each statement whether the conversation makes it true. Answer with one line for each: its number, a colon, and yes or no.",
    `Conversation:\n${messages.map(lineOf).join("\n")}`,
    `Statements:\n${assertions.map((one, at) => `${at + 1}: ${one}`).join("\n")}`,
  ].join("\n\n");
  const answer = await askEndpoint(endpoint, [{ role: "user", content }], { seed: 0, signal });
  return assertions.every((_, at) => verdict(answer.content, at + 1));
}

function lineOf(message: Message): string {
  if (message.role === "tool") return `tool: ${message.content}`;
  const calls = message.calls.map(({ name, given }) => `[${name} ${jsonText(given)}]`);
  return `${message.role}: ${message.content ?? calls.join(" ")}`;
}

function verdict(answer: string, number: number): boolean {
  const said = new RegExp(`(?:^|\\n)\\W*${number}\\W+(yes|no)\\b`, "i").exec(answer)?.[1];
  if (said !== undefined) return said.toLowerCase() === "yes";
  throw new EnvError(
    `tau: the judge said neither yes nor no about statement ${number}: ${JSON.stringify(answer.slice(0, 120))}`,
  );
}

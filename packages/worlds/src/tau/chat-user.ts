/**
 * A user played by a chat model. It is told the guidelines of τ²'s data folder and the task's
 * scenario; to it the agent is the one who asks, so the roles are swapped. Its own tools are its
 * own: the agent sees neither calls nor results.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import {
  askEndpoint,
  type ChatEndpoint,
  type EndpointMessage,
} from "@pawl/core/envs/chat-endpoint.js";
import { EnvError } from "@pawl/core/envs/env.js";
import { readRegularText } from "@pawl/core/files/regular-file.js";
import { STOP, type UserMove, type WaitingUser } from "./conversation.js";
import type { OpenDomain } from "./domains.js";
import type { Message, TauTask } from "./tasks.js";
import { isDict, jsonText, parseJson } from "./value.js";

/** Used where the data folder has no guidelines. */
const GUIDELINES = `You are a customer in a conversation with a service agent. Say one thing at a time, in your own words, and only what the scenario says; give details when you are asked for them. When everything you want is done, say ${STOP} and nothing else.`;

const PARTS: readonly (readonly [key: string, heading: string])[] = [
  ["domain", "Domain"],
  ["reason_for_call", "Reason for call"],
  ["known_info", "Known info"],
  ["unknown_info", "Unknown info"],
  ["task_instructions", "Task instructions"],
];

/** A user that the endpoint plays. */
export function chatUser(endpoint: ChatEndpoint, domain: OpenDomain, data: string): WaitingUser {
  return async ({ task, messages, tools, seed }, signal) => {
    const system = systemText(task, guidelines(data, tools.length > 0 && domain.edition === 2));
    const asked = [{ role: "system" as const, content: system }, ...swapped(messages)];
    const { content, calls } = await askEndpoint(endpoint, asked, { tools, seed, signal });
    if (calls.length === 0) {
      if (content.trim() === "") throw new EnvError("tau: the user's model answered with nothing");
      return { text: content };
    }
    return { calls: calls.map(readCall) };
  };
}

function readCall({
  name,
  arguments: text,
}: {
  readonly name: string;
  readonly arguments: string;
}): Extract<UserMove, { calls: unknown }>["calls"][number] {
  try {
    const given = parseJson(text === "" ? "{}" : text);
    if (isDict(given)) return { name, given };
  } catch {
    // Reported below.
  }
  throw new EnvError(
    `tau: the user's model called ${name} with arguments that are no JSON object: ${text.slice(0, 80)}`,
  );
}

function guidelines(data: string, withTools: boolean): string {
  const name = `simulation_guidelines${withTools ? "_tools" : ""}.md`;
  const path = join(data, "tau2", "user_simulator", name);
  return existsSync(path)
    ? readRegularText(path).replaceAll("<PERSONA_GUIDELINES>", "")
    : GUIDELINES;
}

function systemText(task: TauTask, rules: string): string {
  const { scenario, persona } = task;
  const parts = isDict(scenario)
    ? PARTS.flatMap(([key, heading]) => {
        const text = scenario.get(key);
        return typeof text === "string" && text !== ""
          ? [`\t${heading}:\n\t\t${text.replaceAll("\n", "\n\t\t")}`]
          : [];
      })
    : [`\t${scenario.replaceAll("\n", "\n\t")}`];
  const lines = [
    ...(persona === null ? [] : [`Persona:\n\t${persona}`]),
    "Instructions:",
    ...parts,
  ];
  return `${rules}\n\n<scenario>\n${lines.join("\n")}\n</scenario>`;
}

/** The conversation as the user's model sees it: the agent's words, its own, and its own calls. */
function swapped(messages: readonly Message[]): readonly EndpointMessage[] {
  const seen: EndpointMessage[] = [];
  let calls = 0;
  for (const [at, message] of messages.entries()) {
    if (message.role === "tool") continue;
    if (message.role === "assistant") {
      if (message.calls.length === 0 && message.content !== null)
        seen.push({ role: "user", content: message.content });
      continue;
    }
    if (message.calls.length === 0) {
      seen.push({ role: "assistant", content: message.content ?? "" });
      continue;
    }
    for (const [offset, { name, given }] of message.calls.entries()) {
      const id = `call_${calls++}`;
      const call = {
        id,
        type: "function" as const,
        function: { name, arguments: jsonText(given) },
      };
      seen.push({ role: "assistant", content: null, tool_calls: [call] });
      const result = messages[at + 1 + offset];
      seen.push({
        role: "tool",
        content: result?.role === "tool" ? result.content : "",
        tool_call_id: id,
      });
    }
  }
  return seen;
}

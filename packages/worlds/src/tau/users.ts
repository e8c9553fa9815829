/** The users of a conversation: one played by a chat model, and one made from the task's scenario. */

import { existsSync } from "node:fs";
import { join } from "node:path";
import {
  askEndpoint,
  type ChatEndpoint,
  type EndpointMessage,
} from "@pawl/core/envs/chat-endpoint.js";
import { EnvError } from "@pawl/core/envs/env.js";
import { readRegularText } from "@pawl/core/files/regular-file.js";
import { isRecord, type Tool } from "@pawl/core/text/tool.js";
import { STOP, type User, type UserMove, type WaitingUser } from "./conversation.js";
import type { OpenDomain } from "./domains.js";
import type { Message, TauTask } from "./tasks.js";
import { type Dict, isDict, jsonText, parseJson } from "./value.js";

// A user played by a chat model. It is told the guidelines of τ²'s data folder and the task's
// scenario; to it the agent is the one who asks, so the roles are swapped. Its own tools are its
// own: the agent sees neither calls nor results.

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

// A user made from a task's own scenario, without a model: it opens with why it calls, tells what
// it is asked for sentence by sentence, does what it is told with its own tools, agrees when asked
// to confirm, and ends the conversation when asked whether there is anything else. What it says
// follows from the conversation alone, so the same conversation gets the same answer.

const NO_MORE = "That is all I can tell you.";
const AGREED = "Yes, please go ahead.";

/** What an agent may ask about, and the sentences that answer it. */
const TOPICS: readonly (readonly [asked: RegExp, said: RegExp])[] = [
  [/e-?mail/i, /@|e-?mail/i],
  [/\bzip\b|postal/i, /\b\d{5}\b|\bzip\b/i],
  [/\bname\b|who (am i|are you)|identity|verify/i, /\b[Yy]ou are [A-Z]|\bname\b|\bI am [A-Z]/],
  [/user ?id|username|customer id/i, /user id|\b[a-z]+_[a-z]+_\d+/i],
  [/phone( number)?|mobile number/i, /\d{3}-\d{3}-\d{4}/],
  [/date of birth|\bdob\b|born/i, /born|date of birth|\d{4}-\d\d-\d\d/i],
  [/order (id|number)|which order|order/i, /#W\d+|\border/i],
  [/reservation|booking|confirmation (code|number)/i, /reservation|\b[A-Z0-9]{6}\b/],
  [/payment|card|refund|pay\b/i, /card|paypal|payment|refund|certificate|credit/i],
  [/address|street/i, /address|street|avenue|suite/i],
  [/reason|why/i, /because|reason|mistake|no longer|need/i],
  [/\bwhere\b|location|abroad|travel/i, /currently (at|in|abroad)|abroad|location|home/i],
  [/cabin|class|seat/i, /economy|business|cabin|seat/i],
  [/bag|luggage/i, /bag|luggage/i],
  [/insurance/i, /insurance/i],
  [/passenger/i, /passenger/i],
];

const ANYTHING_ELSE = /anything else|something else|any other|else i can/i;
const CONFIRM =
  /confirm|proceed|go ahead|shall i|should i|would you like|do you want|is (that|this) (correct|right|ok)|\byes\b|agree/i;
const HANDED_OVER = /being transferred|human agent/i;

/** The user of a task's scenario. */
export const scriptedUser: User = ({ task, messages, tools }) => {
  const last = messages.at(-1);
  if (last?.role === "tool") return { text: resultsText(messages) };
  const heard = last?.role === "assistant" ? (last.content ?? "") : "";
  const told = messages.flatMap((one) => (one.role === "user" ? [one.content ?? ""] : []));
  const sentences = sentencesOf(task);
  const left = sentences.filter((one) => !told.some((text) => text.includes(one)));
  if (told.length === 0) return { text: opening(task, sentences) };
  const calls = requestedCalls(heard, tools);
  if (calls.length > 0) return { calls };
  if (HANDED_OVER.test(heard)) return { text: STOP };
  if (ANYTHING_ELSE.test(heard)) {
    if (left.length > 0) return { text: left.join(" ") };
    const own = ownCalls(task, tools, messages);
    return own.length > 0 ? { calls: own } : { text: STOP };
  }
  return { text: answer(heard, sentences, left, told) };
};

function answer(
  heard: string,
  sentences: readonly string[],
  left: readonly string[],
  told: readonly string[],
): string {
  const asked = TOPICS.filter(([question]) => question.test(heard));
  const fitting = sentences.filter(
    (one) =>
      asked.some(([, said]) => said.test(one)) || (left.includes(one) && overlap(one, heard) >= 2),
  );
  const fresh = fitting.filter((one) => left.includes(one));
  // What was told before is told again only if nothing new fits.
  const chosen = fresh.length > 0 ? fresh : CONFIRM.test(heard) ? [] : fitting;
  const words = [...(CONFIRM.test(heard) ? [AGREED] : []), ...chosen];
  if (words.length > 0) return words.join(" ");
  if (left.length > 0) return left[0]!;
  return told.at(-1) === NO_MORE ? STOP : NO_MORE;
}

/** The scenario's sentences as the user would say them. */
function sentencesOf(task: TauTask): readonly string[] {
  const texts = isDict(task.scenario)
    ? ["reason_for_call", "known_info", "unknown_info", "task_instructions"].map(
        (name) => (task.scenario as Dict).get(name) ?? "",
      )
    : [task.scenario];
  return texts
    .flatMap((text) => (typeof text === "string" ? text.split(/(?<=[.!?])\s+/) : []))
    .map((one) => firstPerson(one.trim()))
    .filter((one) => one !== "");
}

/** Why the user calls: the reason if the scenario names one, else its first request. */
function opening(task: TauTask, sentences: readonly string[]): string {
  const reason = isDict(task.scenario) ? task.scenario.get("reason_for_call") : undefined;
  if (typeof reason === "string") {
    const parts = reason.split(/(?<=[.!?])\s+/).map((one) => firstPerson(one.trim()));
    return parts.join(" ");
  }
  const isRequest = (one: string): boolean =>
    !/^I am [A-Z]|^My (name|user id|e-?mail|zip)/.test(one);
  return sentences.find(isRequest) ?? sentences[0] ?? "Hello.";
}

const PERSONS: readonly (readonly [RegExp, string])[] = [
  [/\byou are\b/g, "I am"],
  [/\bYou are\b/g, "I am"],
  [/\byou're\b/gi, "I'm"],
  [/\byou'd\b/gi, "I'd"],
  [/\byou've\b/gi, "I've"],
  [/\byou'll\b/gi, "I'll"],
  [/\byour(s?)\b/g, "my"],
  [/\bYour\b/g, "My"],
  [/\byourself\b/gi, "myself"],
  [/\b[Yy]ou\b/g, "I"],
];

/** What is said to the user, as the user says it: "You are Ann." becomes "I am Ann." */
function firstPerson(sentence: string): string {
  return PERSONS.reduce((text, [from, to]) => text.replace(from, to), sentence);
}

function overlap(a: string, b: string): number {
  const words = (text: string): Set<string> =>
    new Set(text.toLowerCase().match(/[a-z]{5,}/g) ?? []);
  const other = words(b);
  return [...words(a)].filter((word) => other.has(word)).length;
}

type Calls = Extract<UserMove, { calls: unknown }>["calls"];

/** The user's tools that an agent's words ask for, by name or in words, in their order. */
function requestedCalls(heard: string, tools: readonly Tool[]): Calls {
  const found = tools.flatMap((tool) => {
    const at = Math.max(
      heard.indexOf(tool.name),
      heard.toLowerCase().indexOf(tool.name.replaceAll("_", " ")),
    );
    return at < 0 ? [] : [{ tool, at, end: at + tool.name.length }];
  });
  // A name inside a longer one is no request of its own.
  const own = found.filter(
    (one) =>
      !found.some(
        (other) =>
          other !== one &&
          other.at <= one.at &&
          other.end >= one.end &&
          other.end - other.at > one.end - one.at,
      ),
  );
  return own
    .sort((a, b) => a.at - b.at)
    .flatMap(({ tool, end }) => {
      const given = argumentsFrom(heard, heard.slice(end), tool);
      return given === undefined ? [] : [{ name: tool.name, given }];
    });
}

/** Arguments as JSON after the tool's name, or from words of the text; undefined if some are missing. */
function argumentsFrom(heard: string, after: string, tool: Tool): Dict | undefined {
  const json = /^\s*(\{[^{}]*\})/.exec(after)?.[1];
  if (json !== undefined) {
    try {
      const value = parseJson(json);
      if (isDict(value)) return value;
    } catch {
      // Then it was no JSON.
    }
  }
  const given: Dict = new Map();
  const properties = isRecord(tool.parameters.properties) ? tool.parameters.properties : {};
  for (const [name, schema] of Object.entries(properties)) {
    const options =
      isRecord(schema) && Array.isArray(schema.enum) ? (schema.enum as string[]) : WORDS[name];
    const value =
      options?.find((one) => heard.toLowerCase().includes(one)) ?? quotedLike(heard, name);
    if (value !== undefined) given.set(name, value);
  }
  const required = (tool.parameters.required ?? []) as readonly string[];
  return required.every((name) => given.has(name)) ? given : undefined;
}

const WORDS: Readonly<Record<string, readonly string[]>> = {
  app_name: ["messaging", "browser"],
  permission: ["sms", "storage", "phone", "network"],
};

function quotedLike(heard: string, name: string): string | undefined {
  return name === "notification_id" ? /\bnotif_\w+/.exec(heard)?.[0] : undefined;
}

/** What the scenario itself tells the user to do with its tools, if it was not done. */
function ownCalls(task: TauTask, tools: readonly Tool[], messages: readonly Message[]): Calls {
  const done = messages.flatMap((one) =>
    one.role === "user" ? one.calls.map(({ name }) => name) : [],
  );
  const told = isDict(task.scenario) ? "" : task.scenario;
  return requestedCalls(told, tools).filter(({ name }) => !done.includes(name));
}

/** The results of the user's last calls, as the user reports them. */
function resultsText(messages: readonly Message[]): string {
  const from = messages.findLastIndex((one) => one.role === "user");
  const results = messages
    .slice(from + 1)
    .flatMap((one) => (one.role === "tool" ? [one.content] : []));
  return `I did that. This is what I see:\n${results.join("\n")}`;
}

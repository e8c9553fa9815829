/**
 * An episode as conversations: what the model was told and what it answered, one after another.
 *
 * Most episodes are one conversation. An agent's program may hold several, and with another rule
 * (`exactly`) a conversation ends where the next prompt does not continue the tokens of the last.
 */
import type { ChatCall, ChatMessage } from "@pawl/agents/chat.js";
import type { Episode, Step } from "@pawl/core/rollout/episode.js";
import { conversationOf, isConversation, type Message } from "@pawl/core/text/conversation.js";
import type { Tool } from "@pawl/core/text/tool.js";
import { argumentsText, readCall } from "@pawl/core/text/tool.js";
import { parseAnswer } from "@pawl/core/text/tool-calls.js";

/** A message with what it was made from. */
export interface SpokenMessage extends ChatMessage {
  /** What the model wrote, with any reasoning and calls. */
  readonly written?: string;
  /** The step whose response this is. */
  readonly step?: number;
  /** The step that this message answers. */
  readonly answersStep?: number;
}

/** Messages one after another, and the steps that they cover. */
export interface Spoken {
  readonly tools: readonly Tool[] | undefined;
  readonly messages: readonly SpokenMessage[];
  readonly steps: readonly number[];
}

/** Whether a step's prompt goes on from the step before. */
export type Continues = (last: Step, next: Step) => boolean;

/** The same conversation, as a reader sees it: the next prompt shows the last response, or is prose. */
export const readably: Continues = (last, next) =>
  !isConversation(next.prompt) || lastAnswer(next)?.text === last.response;

/** The same tokens: the next prompt begins with all of the last step's. Without tokens: readably. */
export const exactly: Continues = (last, next) => {
  if (last.sequence === undefined || next.sequence === undefined) return readably(last, next);
  const [ids, more] = [last.sequence.ids, next.sequence.ids];
  return ids.length < more.length && ids.every((id, at) => id === more[at]);
};

/** Every step by itself: prompt and response as the model saw and wrote them. */
export const apart: Continues = () => false;

/** The conversations of an episode. */
export function spokenIn({ steps }: Episode, continues: Continues): readonly Spoken[] {
  const chains: number[][] = [];
  for (const [at, step] of steps.entries())
    if (at > 0 && continues(steps[at - 1]!, step)) chains.at(-1)!.push(at);
    else chains.push([at]);
  return chains.map((chain) => spokenOver(steps, chain));
}

function spokenOver(steps: readonly Step[], chain: readonly number[]): Spoken {
  const { tools, messages: opening } = conversationOf(steps[chain[0]!]!.prompt);
  const messages: SpokenMessage[] = opening.map((message) => openingMessage(message));
  for (const [place, at] of chain.entries()) {
    const step = steps[at]!;
    const next = chain[place + 1];
    const replies = repliesTo(step, next === undefined ? undefined : steps[next], tools?.tools, at);
    const ids = replies.flatMap(({ answers }) => answers ?? []);
    messages.push(answerOf(step, at, tools?.tools, ids), ...replies);
  }
  return { tools: tools?.tools, messages, steps: chain };
}

const textOf = ({ pieces }: Message): string => pieces.map(({ text }) => text).join("");

function openingMessage(message: Message): SpokenMessage {
  const { role, call } = message;
  // What a program put into an assistant's mouth is not the model's.
  return { role, content: textOf(message), answers: role === "tool" ? call : undefined };
}

/** The last message of the assistant in a prompt, and what stands after it. */
function lastAnswer(step: Step): { text: string; after: readonly Message[] } | undefined {
  const { messages } = conversationOf(step.prompt);
  const at = messages.findLastIndex(({ role }) => role === "assistant");
  return at < 0 ? undefined : { text: textOf(messages[at]!), after: messages.slice(at + 1) };
}

/** What answered a response: as the next prompt shows it, or the observation itself. */
function repliesTo(
  step: Step,
  next: Step | undefined,
  tools: readonly Tool[] | undefined,
  at: number,
): readonly SpokenMessage[] {
  const seen = next === undefined || !isConversation(next.prompt) ? undefined : lastAnswer(next);
  if (seen !== undefined && seen.after.length > 0)
    return seen.after.map((message) => ({ ...reply(message), answersStep: at }));
  if (step.observation === "") return [];
  const isCall = tools !== undefined && step.wellFormed && readCall(step.action) !== undefined;
  return [
    {
      role: isCall ? "tool" : "user",
      content: step.observation,
      answers: isCall ? callId(at) : undefined,
      answersStep: at,
    },
  ];
}

/** A tool's message without a call to answer is the user's: formats insist on an id. */
function reply(message: Message): SpokenMessage {
  const { role, call } = message;
  if (role !== "tool" || call === undefined)
    return { role: role === "tool" ? "user" : role, content: textOf(message) };
  return { role, content: textOf(message), answers: call };
}

/** A response in parts: reasoning, text and calls. */
function answerOf(
  step: Step,
  at: number,
  tools: readonly Tool[] | undefined,
  ids: readonly string[],
): SpokenMessage {
  const { response } = step;
  const form = response.includes("<tool_call>") ? "hermes" : "json";
  const read = parseAnswer(response, form);
  const calls =
    tools === undefined || !step.wellFormed ? [] : callsOf(step, at, ids, read.calls.length);
  const { reasoning, text } = calls.length > 0 ? read : parseAnswer(response, "hermes");
  return {
    role: "assistant",
    content: calls.length > 0 || reasoning !== undefined ? text : response,
    reasoning,
    calls: calls.length > 0 ? calls : undefined,
    written: response,
    step: at,
  };
}

/** The calls of an action, one a line, with the ids by which they were answered. */
function callsOf(
  { action }: Step,
  at: number,
  ids: readonly string[],
  written: number,
): readonly ChatCall[] {
  if (written === 0) return [];
  return action.split("\n").flatMap((line, index) => {
    const call = readCall(line);
    if (call === undefined) return [];
    const id = ids[index] ?? (index === 0 ? callId(at) : `${callId(at)}${index}`);
    return [{ id, tool: call.tool, arguments: argumentsText(call) }];
  });
}

/** As the chat style names calls. */
const callId = (step: number): string => `call${String(step + 1).padStart(5, "0")}`;

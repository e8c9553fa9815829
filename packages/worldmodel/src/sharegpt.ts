/**
 * Chat JSON in the ShareGPT layout, as LLaMA-Factory reads it: a list, or one object per line, of
 *
 *   { "messages": [{ "role": "system" | "user" | "assistant", "content": "…" }, …] }
 *   { "conversations": [{ "from": "system" | "human" | "gpt", "value": "…" }, …], "system": "…" }
 *
 * In Word-to-World's files the world is the assistant: users send actions, and the assistant
 * answers with the observation, with the marker at the end of a success. In agents' files the agent
 * is the assistant: it thinks and writes `Action: …` or `<action>…</action>`, and users send
 * observations. Which it is follows from the messages.
 */

import { answersOf } from "@pawl/core/text/response.js";
import { z } from "zod";
import {
  type Opening,
  type Protocol,
  protocolOptions,
  readResponse,
  readSystemText,
  responseText,
  systemText,
} from "./protocol.js";
import type { Problems, Trajectory, Turn } from "./trajectory.js";

const message = z.union([
  z.object({ role: z.string(), content: z.string() }),
  z
    .object({ from: z.string(), value: z.string() })
    .transform(({ from, value }) => ({ role: from, content: value })),
]);

const record = z
  .looseObject({
    messages: z.array(message).optional(),
    conversations: z.array(message).optional(),
    system: z.string().optional(),
    id: z.union([z.string(), z.number()]).optional(),
    item_id: z.union([z.string(), z.number()]).optional(),
    env: z.string().optional(),
    task: z.string().optional(),
    split: z.string().optional(),
    type: z.string().optional(),
    policy: z.string().optional(),
    success: z.union([z.boolean(), z.number()]).optional(),
    reward: z.number().optional(),
    done: z.boolean().optional(),
  })
  .refine(({ messages, conversations }) => (messages ?? conversations) !== undefined, {
    message: "neither messages nor conversations",
  });

type ChatRecord = z.output<typeof record>;
type Message = z.output<typeof message>;

const roles: Readonly<Record<string, "system" | "user" | "assistant">> = {
  system: "system",
  user: "user",
  human: "user",
  observation: "user",
  assistant: "assistant",
  gpt: "assistant",
};

/** The trajectories of a chat file; unreadable ones are named and counted. */
export function importChat(
  text: string,
  path: string,
  problems: Problems,
  protocol: Protocol = protocolOptions.parse({}),
): readonly Trajectory[] {
  const name = path.replace(/^.*[\\/]/, "").replace(/\.jsonl?$/, "");
  return parseRecords(text, path, problems).flatMap(([where, value]) => {
    const parsed = record.safeParse(value);
    if (!parsed.success) {
      const { path: at, message: problem } = parsed.error.issues[0]!;
      problems.add(`${at.filter((key) => typeof key === "string").join(".")} ${problem}`, where);
      return [];
    }
    try {
      return [toTrajectory(parsed.data, name, where, protocol)];
    } catch (error) {
      if (!(error instanceof Unreadable)) throw error;
      problems.add(error.message, where);
      return [];
    }
  });
}

/** Trajectories as one file of chat JSON, with the world as the assistant. */
export function exportChat(
  trajectories: readonly Trajectory[],
  protocol: Protocol = protocolOptions.parse({}),
): string {
  const records = trajectories.map((trajectory) => {
    const { env, task, split, type, policy, turns } = trajectory;
    const opening = protocol.context ? trajectory : { ...trajectory, context: undefined };
    return {
      messages: [
        { role: "system", content: systemText(opening, protocol) },
        ...turns.flatMap((turn) => [
          { role: "user", content: turn.action },
          { role: "assistant", content: responseText(turn, protocol) },
        ]),
      ],
      env,
      task,
      split,
      type,
      policy,
      done: turns.at(-1)?.done === true,
    };
  });
  return `[\n${records.map((one) => JSON.stringify(one)).join(",\n")}\n]\n`;
}

/** The `dataset_info.json` by which LLaMA-Factory finds exported files. */
export function datasetInfo(files: Readonly<Record<string, string>>): string {
  const tags = {
    role_tag: "role",
    content_tag: "content",
    user_tag: "user",
    assistant_tag: "assistant",
    system_tag: "system",
  };
  const entries = Object.entries(files).map(([name, file]) => [
    name,
    { file_name: file, formatting: "sharegpt", columns: { messages: "messages" }, tags },
  ]);
  return `${JSON.stringify(Object.fromEntries(entries), undefined, 2)}\n`;
}

/** Why a record is not a trajectory. */
class Unreadable extends Error {}

function parseRecords(
  text: string,
  path: string,
  problems: Problems,
): readonly (readonly [where: string, value: unknown])[] {
  try {
    const json: unknown = JSON.parse(text);
    const list = Array.isArray(json) ? json : [json];
    return list.map((value, at) => [`${path}, record ${at + 1}`, value]);
  } catch {
    // Not one JSON text: perhaps one per line.
    return text.split("\n").flatMap((line, at) => {
      if (line.trim() === "") return [];
      const where = `${path}:${at + 1}`;
      try {
        return [[where, JSON.parse(line) as unknown] as const];
      } catch {
        problems.add("not JSON", where);
        return [];
      }
    });
  }
}

function toTrajectory(
  chat: ChatRecord,
  name: string,
  where: string,
  protocol: Protocol,
): Trajectory {
  const all = (chat.messages ?? chat.conversations ?? []).map(({ role, content }) => {
    const known = roles[role];
    if (known === undefined) throw new Unreadable(`unknown role "${role}"`);
    return { role: known, content };
  });
  const system = [
    chat.system ?? "",
    ...all.filter(({ role }) => role === "system").map(({ content }) => content),
  ]
    .filter((text) => text !== "")
    .join("\n");
  const rest = all.filter(({ role }) => role !== "system");
  const read = saysActions(rest) ? readAgentDialogue : readWorldDialogue;
  const { opening, turns } = read(rest, system, protocol, chat);
  if (turns.length === 0) throw new Unreadable("no action with a response");
  const env = chat.env ?? /^[a-z]+/.exec(name)?.[0] ?? "imported";
  return {
    env,
    // Each record of an unknown task counts as its own task.
    task: chat.task ?? String(chat.id ?? chat.item_id ?? where),
    split: chat.split ?? "train",
    type: chat.type ?? "any",
    policy: chat.policy ?? "imported",
    ...opening,
    turns,
  };
}

interface ReadDialogue {
  readonly opening: Opening;
  readonly turns: readonly Turn[];
}

const tagged = answersOf({}, "tags");
const ACTION = /(^|\n)\s*Action:|<action>/;

/** Whether most of the assistant's messages are actions. */
function saysActions(messages: readonly Message[]): boolean {
  const said = messages.filter(({ role }) => role === "assistant");
  return 2 * said.filter(({ content }) => ACTION.test(content)).length > said.length;
}

/** Users send actions, the assistant answers as the world. */
function readWorldDialogue(
  messages: readonly Message[],
  system: string,
  protocol: Protocol,
  { done }: ChatRecord,
): ReadDialogue {
  const turns: Turn[] = [];
  for (let at = 0; at < messages.length; at += 2) {
    const [action, response] = [messages[at]!, messages[at + 1]];
    if (action.role !== "user") throw new Unreadable("two messages of the assistant in a row");
    // A final action without an answer teaches nothing.
    if (response === undefined) break;
    if (response.role !== "assistant") throw new Unreadable("two messages of the user in a row");
    const ended = at + 2 >= messages.length && done === true;
    const outcome = readResponse(response.content, false, protocol);
    turns.push({ action: action.content.trim(), ...outcome, done: outcome.done || ended });
  }
  return { opening: readSystemText(system), turns };
}

/** The assistant thinks and acts, users send the world's answers. */
function readAgentDialogue(
  messages: readonly Message[],
  system: string,
  _: Protocol,
  { success, reward }: ChatRecord,
): ReadDialogue {
  const first = messages.findIndex(
    ({ role, content }) => role === "assistant" && ACTION.test(content),
  );
  const before = messages.slice(0, first).filter(({ role }) => role === "user");
  const firstObservation = before.at(-1)?.content.trim() ?? "";
  const reached = success === undefined ? (reward ?? 0) >= 1 : Number(success) === 1;
  const turns: Turn[] = [];
  for (let at = first; at < messages.length; at += 2) {
    const [said, seen] = [messages[at]!, messages[at + 1]];
    if (said.role !== "assistant") throw new Unreadable("two messages of the user in a row");
    if (seen === undefined) break;
    if (seen.role !== "user") throw new Unreadable("two messages of the assistant in a row");
    const last = at + 3 >= messages.length;
    turns.push({
      action: actionOf(said.content),
      observation: seen.content.trim(),
      done: last && reached,
      success: last && reached,
    });
  }
  const goal = /Your task is to:?\s*([^\n]+)/i.exec(firstObservation)?.[1]?.trim() ?? "";
  const context = system.trim() === "" ? {} : { context: system };
  return { opening: { goal, ...context, firstObservation }, turns };
}

function actionOf(said: string): string {
  if (said.includes("<action>")) return tagged.parse(said).action;
  const at = said.lastIndexOf("Action:");
  return at < 0 ? said.trim() : said.slice(at + "Action:".length).trim();
}

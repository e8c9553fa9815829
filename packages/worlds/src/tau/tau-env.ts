/** Conversations as tool environments: with a user in this process, or one that answers later. */

import { askEndpoint, type ChatEndpoint } from "@pawl/core/envs/chat-endpoint.js";
import { begun, EnvError, type Task } from "@pawl/core/envs/env.js";
import type { RemoteToolEnv, ToolEnv } from "@pawl/core/envs/tool-env.js";
import { argumentsText, type Tool, type ToolCall } from "@pawl/core/text/tool.js";
import {
  type Case,
  type Conversation,
  createConversation,
  DONE,
  RESPOND,
  type Turns,
  type User,
  type WaitingUser,
} from "./conversation.js";
import type { OpenDomain } from "./domains.js";
import { type Message, scenarioParts, type TauTask } from "./tasks.js";
import { toolSchema } from "./tool-schemas.js";
import { type Dict, isDict, jsonText, parseJson } from "./value.js";
import type { Side } from "./world.js";

/** What the environments of one opened domain share. */
export interface TauWorld {
  readonly domain: OpenDomain;
  /** Whether there is no user. */
  readonly solo: boolean;
  /** Checks natural-language assertions; without it they do not count. */
  readonly judge: ChatEndpoint | undefined;
  /** The task of a listed one; an unlisted one is an `EnvError`. */
  taskOf(task: Task): { readonly task: TauTask; readonly type: string };
}

/** A running conversation, with what its expert sees. */
export interface TauEnv extends ToolEnv {
  readonly conversation: Conversation;
}

const WORDS: Readonly<Record<string, { readonly parameters: readonly string[] }>> = {
  [RESPOND]: { parameters: ["content"] },
  [DONE]: { parameters: [] },
};

/** The tools of a side of a domain, as models are told about them. */
function sideTools(domain: OpenDomain, side: Side): readonly Tool[] {
  return domain.tools
    .names(side)
    .map((name) => toolSchema(name, domain.tools.definition(side, name)));
}

/** The agent's tools: with a user, words to it; without, the user's tools and an end. */
function agentTools({ domain, solo }: TauWorld): readonly Tool[] {
  const own = sideTools(domain, "assistant");
  const extra = toolSchema(solo ? DONE : RESPOND, WORDS[solo ? DONE : RESPOND]!);
  return solo ? [...own, ...sideTools(domain, "user"), extra] : [...own, extra];
}

/** What both kinds of environment have in common. */
function createShared(world: TauWorld, from?: Conversation, fromType = "") {
  const tools = agentTools(world);
  const userTools = world.solo ? [] : sideTools(world.domain, "user");
  let conversation = from;
  let type = fromType;
  let live = from !== undefined;
  const current = (asked: string): Conversation => begun(conversation, "tau", asked);
  const facts = {
    checksCalls: true,
    get goal() {
      const { about, messages } = current("goal");
      if (about.solo) return about.task.ticket!;
      const first = messages.find((one) => one.role === "user" && one.content !== null);
      return first?.content ?? "Help the user.";
    },
    get taskType() {
      current("taskType");
      return type;
    },
    get conversation() {
      return current("the expert");
    },
    tools: () => tools,
    irreversible({ tool }: ToolCall) {
      if (tool === DONE || tool === "transfer_to_human_agents") return true;
      const { changes } = world.domain.tools;
      return (changes("assistant", tool) ?? (world.solo && changes("user", tool))) === true;
    },
    initialContext: () => contextOf(current("initialContext")),
  };
  return {
    facts,
    begin(task: Task, seed: number): Turns<string> {
      const found = world.taskOf(task);
      const { userTools: allowed } = found.task;
      const about: Case = {
        domain: world.domain,
        task: found.task,
        seed,
        solo: world.solo,
        judged: world.judge !== undefined,
        userTools: userTools.filter(({ name }) => allowed === null || allowed.includes(name)),
      };
      conversation = createConversation(about);
      type = found.type;
      live = true;
      return conversation.start();
    },
    *act(call: ToolCall) {
      const here = current("step");
      if (!live) throw new EnvError("tau: step was called after the end; call reset(task) first");
      const result = yield* here.act(call.tool, givenOf(call));
      live = !result.done;
      return result;
    },
    copy: () => ({ conversation: conversation?.copy(), type }),
  };
}

/** The arguments with their numbers as they were written. */
function givenOf(call: ToolCall): Dict {
  const value = parseJson(argumentsText(call));
  return isDict(value) ? value : new Map();
}

/** A conversation with a user in this process. */
export function createTauEnv(
  world: TauWorld,
  user: User,
  from?: Conversation,
  type?: string,
): TauEnv {
  const shared = createShared(world, from, type);
  const play = <T>(turns: Turns<T>): T => {
    let turn = turns.next();
    while (!turn.done) {
      if (turn.value.ask === "judge") throw new EnvError("tau: a judge answers later");
      turn = turns.next(user(turn.value.view));
    }
    return turn.value;
  };
  // Added to the facts, because spreading them would lose the getters.
  return Object.assign(shared.facts, {
    reset: (task: Task, seed = 0) => play(shared.begin(task, seed)),
    step: (call: ToolCall) => play(shared.act(call)),
    clone() {
      const { conversation, type: kind } = shared.copy();
      return createTauEnv(world, user, conversation, kind);
    },
  });
}

/** A conversation with a user that answers later. */
export function createWaitingTauEnv(world: TauWorld, user: WaitingUser): RemoteToolEnv {
  const shared = createShared(world);
  const play = async <T>(turns: Turns<T>, signal?: AbortSignal): Promise<T> => {
    let turn = turns.next();
    while (!turn.done) {
      const asked = turn.value;
      const { nlAssertions } = asked.ask === "judge" ? asked.task : asked.view.task;
      turn = turns.next(
        asked.ask === "user"
          ? await user(asked.view, signal)
          : await judgeAssertions(world.judge!, nlAssertions, asked.messages, signal),
      );
    }
    return turn.value;
  };
  return Object.assign(shared.facts, {
    reset: (task: Task, seed?: number, signal?: AbortSignal) =>
      play(shared.begin(task, seed ?? 0), signal),
    step: (call: ToolCall, signal?: AbortSignal) => play(shared.act(call), signal),
    close: async () => undefined,
  });
}

/** What a world model may know: the user's scenario, and what reading tools answer at the start. */
function contextOf({ about }: Conversation): string {
  const { task, domain } = about;
  const parts = Object.entries(scenarioParts(task)).map(([name, text]) => `${name}: ${text}`);
  const world = domain.fresh();
  const reads = task.reference
    .filter(({ side, name }) => domain.tools.changes(side, name) === false)
    .map(
      ({ side, name, given }) =>
        `${name} ${jsonText(given)}\n${world.call(side, name, given).content}`,
    );
  return [...parts, ...new Set(reads)].join("\n");
}

/** Whether all assertions hold. */
async function judgeAssertions(
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

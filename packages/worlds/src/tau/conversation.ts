/**
 * A conversation of an agent and a user about one task: turns, limits, and how it ends. It is
 * written once for users that answer at once and for those that answer later: where the user is to
 * move, it yields what the user knows, and is resumed with the move.
 */

import type { StepResult } from "@pawl/core/envs/env.js";
import type { Tool } from "@pawl/core/text/tool.js";
import type { OpenDomain } from "./domains.js";
import { evaluate, evaluateTau1, type Outcome, prepare, replayMessages } from "./evaluate.js";
import type { Message, TauTask } from "./tasks.js";
import { type Dict, PyError } from "./value.js";
import type { CallResult, Side, World } from "./world.js";

/** What a user knows when it is to move. */
interface UserView {
  readonly task: TauTask;
  /** The whole conversation; a user looks at the agent's texts and at its own calls and results. */
  readonly messages: readonly Message[];
  /** The user's own tools. */
  readonly tools: readonly Tool[];
  readonly seed: number;
}

/** A user's move: words, or calls of its own tools. */
export type UserMove =
  | { readonly text: string }
  | { readonly calls: readonly { readonly name: string; readonly given: Dict }[] };

/** A user in this process: its move follows from what was said, and from nothing else. */
export type User = (view: UserView) => UserMove;

/** A user that answers later. */
export type WaitingUser = (view: UserView, signal?: AbortSignal) => Promise<UserMove>;

/** The words that open every conversation. */
export const GREETING = "Hi! How can I help you today?";

/** The user ends the conversation with this word. */
export const STOP = "###STOP###";

/** In τ² these end it, too: handed over, or beyond what the scenario says. */
const STOPS: Readonly<Record<1 | 2, readonly string[]>> = {
  1: [STOP],
  2: [STOP, "###TRANSFER###", "###OUT-OF-SCOPE###"],
};

/** Whether the user's words end the conversation. */
function endsIt(text: string, edition: 1 | 2): boolean {
  return STOPS[edition].some((stop) => text.includes(stop));
}

/** Limits of τ²: messages, those of tools included, and errors of tools. */
const MOST_MESSAGES = 200;
const MOST_ERRORS = 10;

/** The tool that stands for words to the user. */
export const RESPOND = "respond";
/** The tool that ends a case without a user. */
export const DONE = "done";

/** What others are asked: the user for its move, or a judge whether a task's assertions hold. */
type Question =
  | { readonly ask: "user"; readonly view: UserView }
  | { readonly ask: "judge"; readonly task: TauTask; readonly messages: readonly Message[] };

/** Where others come in: a question goes out, the user's move or the judge's verdict comes back. */
export type Turns<T> = Generator<Question, T, UserMove | boolean>;

/** What a conversation needs to start. */
export interface Case {
  readonly domain: OpenDomain;
  readonly task: TauTask;
  readonly seed: number;
  /** Whether there is no user: the agent has the tools of both sides. */
  readonly solo: boolean;
  /** Whether somebody judges natural-language assertions; else they do not count. */
  readonly judged: boolean;
  readonly userTools: readonly Tool[];
}

/** A conversation in progress. */
export interface Conversation {
  readonly about: Case;
  readonly messages: readonly Message[];
  readonly world: World;
  /** The first observation. */
  start(): Turns<string>;
  /** The agent calls a tool; `respond` speaks to the user. */
  act(name: string, given: Dict): Turns<StepResult>;
  copy(): Conversation;
}

interface State {
  world: World;
  messages: Message[];
  delivered: number;
  errors: number;
}

/** A conversation about a task. */
export function createConversation(about: Case, from?: State): Conversation {
  const { domain, task, solo } = about;
  const state: State = from ?? { world: domain.fresh(), messages: [], delivered: 0, errors: 0 };
  const said = (role: Side, content: string): void => {
    state.messages.push({ role, content, calls: [] });
    state.delivered++;
  };
  const spent = (): boolean =>
    domain.edition === 2 && (state.delivered >= MOST_MESSAGES || state.errors >= MOST_ERRORS);
  const call = (caller: Side, side: Side, name: string, given: Dict): CallResult => {
    const called = state.world.call(side, name, given);
    state.messages.push({ role: caller, content: null, calls: [{ side, name, given }] });
    state.messages.push({ role: "tool", content: called.content });
    state.delivered += 2;
    if (called.error) state.errors++;
    return called;
  };
  /** The user moves until it says something; undefined if the limits were reached first. */
  function* userTurn(): Turns<string | undefined> {
    for (;;) {
      if (spent()) return undefined;
      const { messages } = state;
      const view = { task, messages, tools: about.userTools, seed: about.seed };
      const move = (yield { ask: "user", view }) as UserMove;
      if ("text" in move) {
        said("user", move.text);
        return move.text;
      }
      for (const { name, given } of move.calls) call("user", "user", name, given);
    }
  }
  const over = (observation: string, outcome: Outcome, valid = true): StepResult => ({
    observation,
    reward: outcome.reward,
    done: true,
    info: { valid, success: outcome.reward === 1, score: outcome.reward },
  });
  const going = (observation: string, valid: boolean): StepResult => ({
    observation,
    reward: 0,
    done: false,
    info: { valid, success: false },
  });
  function* judge(ended: boolean): Turns<Outcome> {
    if (domain.edition === 1) {
      const words = state.messages.flatMap((one) =>
        one.role === "assistant" && one.content !== null ? [one.content] : [],
      );
      return evaluateTau1(domain.fresh, task, state.world, words);
    }
    try {
      const outcome = evaluate(domain.fresh, task, state.messages, ended);
      if (!about.judged || !ended || !task.basis.includes("NL_ASSERTION")) return outcome;
      // What costs is asked last, and only if it can still matter.
      if (outcome.reward === 0 || task.nlAssertions.length === 0) return outcome;
      const holds = (yield { ask: "judge", task, messages: state.messages }) as boolean;
      return { ...outcome, reward: holds ? outcome.reward : 0 };
    } catch (error) {
      // An assertion about something that does not exist: the original's evaluation fails there.
      if (error instanceof PyError) return { reward: 0 };
      throw error;
    }
  }
  return {
    about,
    get messages() {
      return state.messages;
    },
    get world() {
      return state.world;
    },
    *start() {
      prepare(state.world, task);
      replayMessages(state.world, task.history);
      state.messages.push(...task.history);
      if (solo) return task.ticket!;
      if (task.history.length === 0)
        state.messages.push({ role: "assistant", content: GREETING, calls: [] });
      const last = state.messages.at(-1)!;
      if (last.role !== "user") yield* userTurn();
      return openingText(state.messages, task.history.length);
    },
    *act(name, given) {
      if (solo && name === DONE) {
        said("assistant", STOP);
        return over("The case is closed.", yield* judge(true));
      }
      if (!solo && name === RESPOND) {
        const content = given.get("content");
        if (typeof content !== "string" || content.trim() === "")
          return going("Error: content: expected some words for the user.", false);
        said("assistant", content);
        const answer = yield* userTurn();
        if (answer === undefined) return over("The conversation is too long.", yield* judge(false));
        return endsIt(answer, domain.edition)
          ? over(answer, yield* judge(true))
          : going(answer, true);
      }
      const side = solo && state.world.changes("user", name) !== undefined ? "user" : "assistant";
      const called = call("assistant", side, name, given);
      const known = state.world.changes(side, name) !== undefined;
      const valid = known && !called.error;
      const content = called.content === "" ? "(nothing)" : called.content;
      if (domain.edition === 1 && name === "transfer_to_human_agents" && valid)
        return over(content, yield* judge(true), valid);
      return spent() ? over(content, yield* judge(false), valid) : going(content, valid);
    },
    copy: () =>
      createConversation(about, {
        ...state,
        world: state.world.copy(),
        messages: [...state.messages],
      }),
  };
}

/** What the agent reads first: the user's words, after the conversation before if there was one. */
function openingText(messages: readonly Message[], before: number): string {
  const last = messages.at(-1)!;
  const words = last.role === "user" ? (last.content ?? "") : "";
  if (before === 0) return words;
  const lines = messages.slice(0, -1).map((one) => {
    if (one.role === "tool") return `tool: ${one.content}`;
    const calls = one.calls.map(({ name }) => `[calls ${name}]`).join(" ");
    return `${one.role}: ${one.content ?? calls}`;
  });
  return `${lines.join("\n")}\nuser: ${words}`;
}

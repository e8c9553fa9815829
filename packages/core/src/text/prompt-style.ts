/** The types of prompts: what a style is given, what it renders, and how an answer is parsed. */
import type { CallForm, Tool } from "./tool.js";

// An environment's own words: what it tells the policy, how it shows what happened, and how it
// reads answers. Every part is optional: without any, the wording is neutral.

/** How an environment speaks to a policy. */
export interface EnvPrompt {
  /**
   * Who the agent is and how it acts: the opening of a full prompt, the system message of a
   * conversation.
   */
  readonly instructions?: string;
  /** What to reason about before acting, such as "First reason step by step about the situation". */
  readonly advice?: string;
  /** How to answer in a conversation. */
  readonly answer?: string;
  /** Past pairs of observation and action to show by default (all in conversations). */
  readonly history?: number | "all";
  /** Its own wording with named slots, as in a file for `prompt.template`. */
  readonly template?: string;
  /** An action is written between one of these tags, and keeps them. */
  readonly actionTags?: readonly string[];
  /** What stands before and after an observation in a conversation. */
  readonly around?: readonly [before: string, after: string];
  /** Renders a full prompt its own way. */
  render?(view: PromptView, slots: SlotOptions): readonly PromptPiece[];
  /** Reads an answer its own way. */
  parse?(response: string): ParsedResponse;
  /** Writes an answer the way `parse` reads it. */
  format?(action: string, thought?: string): string;
}

/** The words for an environment that says nothing about itself. */
export const neutral = {
  instructions:
    "You act in an environment, one action at a time. After each action you are told what happens.",
  advice: "First reason step by step about the situation",
  answer: "Answer with one action and nothing else.",
} as const;

/** Who speaks in a message of a conversation. */
export type Role = "system" | "user" | "assistant" | "tool";

/** Where a piece of a prompt came from. */
export type PieceOrigin =
  | "template"
  | "system"
  | "tools"
  | "task"
  | "history"
  | "observation"
  | "actions"
  | "memory";

/** A piece of a prompt with its origin. */
export interface PromptPiece {
  readonly origin: PieceOrigin;
  readonly text: string;
  /** In a conversation: this piece begins a message of this role. */
  readonly role?: Role;
  /** The id of the tool call that this message makes or answers. */
  readonly call?: string;
}

/** An action and the environment's answer. */
interface PastStep {
  readonly action: string;
  readonly observation: string;
  /** What the policy wrote; default: the action in the style's format. */
  readonly response?: string;
}

/** What a rollout knows when it asks for the next action. */
export interface PromptView {
  readonly goal: string;
  readonly firstObservation: string;
  /** What the policy sees now. */
  readonly observation: string;
  /** The steps before this one. */
  readonly steps: readonly PastStep[];
  /** The actions that are valid now, if the environment lists them. */
  readonly admissible: readonly string[] | undefined;
  /** Number of this step, from 0. */
  readonly index: number;
  /** Lessons from earlier attempts at the same task (Reflexion). */
  readonly memory?: readonly string[];
  /** The tools to act with, if the environment offers any. */
  readonly tools?: readonly Tool[] | undefined;
}

/** An action, and whether its response had the requested form. */
export interface ParsedResponse {
  readonly action: string;
  readonly wellFormed: boolean;
  /** What is wrong with a tool call, for the message that answers it. */
  readonly problem?: string;
}

/** A way to ask for an action and to parse the answer. */
export interface PromptStyle {
  readonly name: string;
  /** Whether a step's prompt, response and observation are the beginning of the next step's prompt. */
  readonly continuing: boolean;
  /** The text that ends a response and belongs to it; empty if the tokenizer's end token does. */
  readonly responseEnd: string;
  /** Whether the environment gets actions in lower case. */
  readonly lowerCase?: boolean;
  /** What stands before and after an observation in a conversation. */
  readonly around?: readonly [before: string, after: string];
  /** Past pairs of observation and action that a prompt shows. Default: all. */
  readonly history?: number | "all";
  /** How tool calls are written, in a conversation. */
  readonly callForm?: CallForm;
  /**
   * Whether the token that ends an observation is its last token, which is learnt, or only read.
   * Default: what `continuation` gives is the observation, to its end.
   */
  readonly observationEnd?: "learnt" | "read";
  /** Whether text is encoded as a whole, or each piece by itself. Default: whole. */
  readonly tokens?: "whole" | "pieces";
  /** The longest prompt in tokens, beyond which a conversation drops its oldest turns. */
  readonly promptTokens?: number;
  render(view: PromptView): readonly PromptPiece[];
  /** With `tools`, the answer should be a call of one of them. */
  parse(response: string, tools?: readonly Tool[]): ParsedResponse;
  /** The response a policy would write for this action, without `responseEnd`. */
  format(action: string, thought?: string): string;
  /** The observation as it follows a response, which a world model should predict. */
  continuation(observation: string, done: boolean, tools?: readonly Tool[]): readonly PromptPiece[];
}

/** Which slots a style fills. */
export interface SlotOptions {
  readonly history: number | "all";
  readonly admissible: boolean;
}

/** An observation and the action that followed it. */
interface HistoryPair {
  /** Number of the step, from 1. */
  readonly number: number;
  /** The observation the action answered. */
  readonly observation: string;
  readonly action: string;
}

/** The last `length` pairs of observation and action, oldest first. */
export function recentPairs(view: PromptView, length: number | "all"): readonly HistoryPair[] {
  const { steps } = view;
  const from = length === "all" ? 0 : Math.max(0, steps.length - length);
  return steps.slice(from).map((step, offset) => {
    const at = from + offset;
    return {
      number: at + 1,
      observation: at === 0 ? view.firstObservation : (steps[at - 1]?.observation ?? ""),
      action: step.action,
    };
  });
}

/** Adds a piece; an empty text adds nothing. */
type Say = (origin: PieceOrigin, text: string) => void;

/** An empty list of pieces, and how to add to it. */
export function collector(): { readonly pieces: PromptPiece[]; readonly say: Say } {
  const pieces: PromptPiece[] = [];
  return {
    pieces,
    say: (origin, text) => {
      if (text !== "") pieces.push({ origin, text });
    },
  };
}

/** The text of a prompt; in a conversation, each message begins with its role. */
export function promptText(pieces: readonly PromptPiece[]): string {
  return pieces
    .map(({ text, role, origin }, at) => {
      const speaker = role ?? (origin === "tools" && at === 0 ? "tools" : undefined);
      return speaker === undefined ? text : `${at === 0 ? "" : "\n\n"}[${speaker}]\n${text}`;
    })
    .join("");
}

/** Lessons from earlier attempts, in prose. */
export function sayMemory({ memory }: PromptView, say: Say): void {
  if (memory === undefined || memory.length === 0) return;
  say("template", "\n\nWhat you noted after earlier attempts at this same task:\n");
  say("memory", memory.map((note) => `- ${note}`).join("\n"));
}

/** A number with its noun: 1 step, 2 steps. */
export function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}

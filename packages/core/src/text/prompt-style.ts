/** The types of prompts: what a style is given, what it renders, and how an answer is parsed. */
import type { CallForm, Tool } from "./tool.js";

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

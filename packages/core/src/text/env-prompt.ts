/**
 * An environment's own words: what it tells the policy, how it shows what happened, and how it
 * reads answers. Every part is optional: without any, the wording is neutral.
 */
import type { SlotOptions } from "./history.js";
import type { ParsedResponse, PromptPiece, PromptView } from "./prompt-style.js";

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

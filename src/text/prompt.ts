/**
 * Prompts: what a policy reads before each decision, and the form it is asked to answer in.
 *
 * A style renders what a rollout knows into pieces, each with its origin, so that every token can later
 * be traced to whoever wrote it. `full` is prose with the slots of the paper's three templates (task,
 * step count, recent observation/action pairs, current step and observation, admissible actions), for
 * pretrained models; `compact` is the slots alone behind one-token markers, for small models.
 */
import { z } from "zod";
import { compactStyle } from "./prompt-compact.js";
import { fullStyle } from "./prompt-full.js";
import type { ParsedResponse } from "./response.js";

/** The slots of the paper's prompts differ by the kind of world: a house, a shop, a search engine. */
export type PromptFamily = "house" | "shop" | "search";

/** Where a piece of a prompt came from. */
export type PieceOrigin = "template" | "task" | "history" | "observation" | "actions" | "memory";

/** A piece of a prompt with its origin. */
export interface PromptPiece {
  readonly origin: PieceOrigin;
  readonly text: string;
}

/** An action and what the environment answered. */
export interface PastStep {
  readonly action: string;
  readonly observation: string;
}

/** What a rollout knows when it asks for the next action. */
export interface PromptView {
  readonly goal: string;
  readonly firstObservation: string;
  /** What the policy sees now. */
  readonly observation: string;
  /** The steps before this one. */
  readonly steps: readonly PastStep[];
  /** The actions that would be carried out now, where the environment lists them. */
  readonly admissible: readonly string[] | undefined;
  /** Number of this step, from 0. */
  readonly index: number;
  /** Lessons from earlier attempts at the same task (Reflexion). */
  readonly memory?: readonly string[];
}

/** A way to ask for an action and to understand the answer. */
export interface PromptStyle {
  readonly name: string;
  readonly family: PromptFamily;
  /** Whether a step's prompt, response and observation are the beginning of the next step's prompt. */
  readonly continuing: boolean;
  /** The text that ends a response and belongs to it; empty where the tokenizer's end token does. */
  readonly responseEnd: string;
  render(view: PromptView): readonly PromptPiece[];
  parse(response: string): ParsedResponse;
  /** The response a policy would write for this action, without `responseEnd`. */
  format(action: string, thought?: string): string;
  /** The observation as it follows a response: what a world model is to predict. */
  continuation(observation: string, done: boolean): readonly PromptPiece[];
}

/** Settings of the prompts: types, defaults and help come from here. */
export const promptOptions = z.strictObject({
  style: z
    .enum(["full", "compact"])
    .default("full")
    .describe("prose around the slots (full) or the slots alone, for small models (compact)"),
  history: z
    .union([z.int().min(0), z.literal("all")])
    .optional()
    .describe("past observation/action pairs to show, or all; default 2, for search all"),
  admissible: z
    .boolean()
    .optional()
    .describe("list the admissible actions; default yes in the full style, no in the compact one"),
});

/** Settings of the prompts, as a caller gives them. */
export type PromptOptions = z.input<typeof promptOptions>;

/** The style for a family of environments. */
export function promptStyle(family: PromptFamily, options: PromptOptions = {}): PromptStyle {
  const { style, history, admissible } = promptOptions.parse(options);
  const slots = {
    family,
    history: historyLength(family, history),
    admissible: admissible ?? style === "full",
  } as const;
  return style === "full" ? fullStyle(slots) : compactStyle(slots);
}

/** How many past pairs a prompt shows where nothing is said: 2, and for search all. */
export function historyLength(
  family: PromptFamily,
  history: PromptOptions["history"],
): number | "all" {
  return history ?? (family === "search" ? "all" : 2);
}

/** The text of a prompt. */
export function promptText(pieces: readonly PromptPiece[]): string {
  return pieces.map((piece) => piece.text).join("");
}

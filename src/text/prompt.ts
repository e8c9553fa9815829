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
import type { PromptFamily, PromptPiece, PromptStyle } from "./prompt-style.js";

export type {
  PastStep,
  PieceOrigin,
  PromptFamily,
  PromptPiece,
  PromptStyle,
  PromptView,
} from "./prompt-style.js";

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

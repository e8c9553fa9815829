/**
 * Prompts: what a policy reads before each decision, and the form its answer should have.
 *
 * A style renders what a rollout knows into pieces, each with its origin, so that every token can
 * later be traced to its author. `full` is prose with the slots of the paper's three templates
 * (task, step count, recent observation/action pairs, current step and observation, admissible
 * actions), for pretrained models; `compact` is the slots alone after one-token markers, for small
 * models.
 */
import { z } from "zod";
import { compactStyle } from "./prompt-compact.js";
import { fullStyle } from "./prompt-full.js";
import type { PromptFamily, PromptPiece, PromptStyle } from "./prompt-style.js";
import { addPluginStyle, type PromptStyleKind, pluginStyle } from "./style-plugins.js";

export type {
  PastStep,
  PieceOrigin,
  PromptFamily,
  PromptPiece,
  PromptStyle,
  PromptView,
} from "./prompt-style.js";

/**
 * Settings of the prompts: the source of types, defaults and help. A plugin's style replaces them by
 * settings that have it too.
 */
export let promptOptions = z.strictObject({
  style: z
    .enum(["full", "compact"])
    .default("full")
    .describe("full: a prose prompt; compact: only its contents, for small models"),
  history: z
    .union([z.int().min(0), z.literal("all")])
    .optional()
    .describe("past observation/action pairs to show (default: 2; all for search)"),
  admissible: z
    .boolean()
    .optional()
    .describe(
      "list the admissible actions (default: yes in the full style, no in the compact one)",
    ),
});

/** Settings of the prompts, as a caller gives them. */
export type PromptOptions = z.input<typeof promptOptions>;

/** Adds a prompt style, so that `prompt.style` can name it. */
export function registerPromptStyle(kind: PromptStyleKind): void {
  const { style } = promptOptions.shape;
  const names: readonly string[] = style.unwrap().options;
  addPluginStyle(kind, names);
  promptOptions = promptOptions.extend({
    style: z
      .enum([...names, kind.name])
      .default("full")
      .describe(`${style.description}; ${kind.name}: ${kind.title}`),
  }) as unknown as typeof promptOptions;
}

/** The style for a family of environments. */
export function promptStyle(family: PromptFamily, options: PromptOptions = {}): PromptStyle {
  const { style, history, admissible } = promptOptions.parse(options);
  const slots = {
    family,
    history: historyLength(family, history),
    admissible: admissible ?? style === "full",
  } as const;
  const own = pluginStyle(style, slots);
  if (own !== undefined) return own;
  return style === "full" ? fullStyle(slots) : compactStyle(slots);
}

/** The default number of past pairs that a prompt shows: 2, or all for search. */
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

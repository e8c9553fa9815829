/** Prompt styles of plugins. */
import { addedParts, addPart } from "../added-parts.js";
import { UserError } from "../errors.js";
import type { PromptStyle } from "./prompt-style.js";

/** What the settings say about the slots of a prompt. */
export interface StyleSlots {
  /** Past pairs of observation and action to show. */
  readonly history: number | "all";
  /** Whether to list the admissible actions. */
  readonly admissible: boolean;
}

/** A prompt style of one's own, for a plugin. */
export interface PromptStyleKind {
  readonly name: string;
  /** What help says about it. */
  readonly title: string;
  create(slots: StyleSlots): PromptStyle;
}

/** The styles of plugins by name. */
export const pluginStyles = () => addedParts<PromptStyleKind>("promptStyles");

/** Adds a style to the list; `prompt.ts` offers it. */
export function addPluginStyle(kind: PromptStyleKind, taken: readonly string[]): void {
  const { name, title, create } = kind ?? {};
  if (typeof name !== "string" || typeof title !== "string" || typeof create !== "function")
    throw new UserError("a prompt style consists of a name, a title and create(slots)");
  if (taken.includes(name))
    throw new UserError(
      `there is a prompt style "${name}" already; choose another name than ${taken.join(", ")}`,
    );
  addPart("promptStyles", name, kind);
}

const METHODS = ["render", "parse", "format", "continuation"] as const;

/** The style with this name, if a plugin has it. */
export function pluginStyle(name: string, slots: StyleSlots): PromptStyle | undefined {
  const kind = pluginStyles().get(name);
  if (kind === undefined) return undefined;
  const style = kind.create(slots);
  const missing = METHODS.find((method) => typeof style?.[method] !== "function");
  if (missing !== undefined)
    throw new UserError(`prompt style "${name}": what create gave has no ${missing}()`);
  return style;
}

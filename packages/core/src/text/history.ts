/** History: the past observation/action pairs a prompt shows. */
import type { PromptView } from "./prompt-style.js";

/** Which slots a style fills. */
export interface SlotOptions {
  readonly history: number | "all";
  readonly admissible: boolean;
}

/** An observation and the action that followed it. */
export interface HistoryPair {
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

/**
 * What an answer is held to while it is sampled: JSON of a schema, calls of tools, or text in which
 * every call is right. Plain data, recorded with what was sampled, so that log-probabilities can be
 * computed under the same masks again (`constraint/`).
 */
import type { CallForm } from "./tool.js";

/** What an answer is held to; several parts are alternatives. */
export interface Constraint {
  /** JSON of this schema; `true` for any object. */
  readonly json?: unknown;
  /** Calls of these tools. */
  readonly calls?: {
    readonly form: CallForm;
    readonly tools: readonly ConstrainedTool[];
    /** One call only. */
    readonly single?: true;
  };
  /** Text, whose calls are those of `calls`. */
  readonly text?: true;
}

/** A tool, and what its arguments are held to: `true` for any object. */
export interface ConstrainedTool {
  readonly name: string;
  readonly arguments: unknown;
}

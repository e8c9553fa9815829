/** The user's side of a conversation: somebody who says what comes next. */

import type { Tool } from "@pawl/core/text/tool.js";
import type { Message, TauTask } from "./tasks.js";
import type { Dict } from "./value.js";

/** What a user knows when it is to move. */
export interface UserView {
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
export function endsIt(text: string, edition: 1 | 2): boolean {
  return STOPS[edition].some((stop) => text.includes(stop));
}

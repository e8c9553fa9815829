/** The type of a prompt style: its input, what it renders, and how an answer is parsed. */

/** The slots of the paper's prompts differ by the kind of world: a house, a shop, a search engine. */
export type PromptFamily = "house" | "shop" | "search";

/** Where a piece of a prompt came from. */
export type PieceOrigin = "template" | "task" | "history" | "observation" | "actions" | "memory";

/** A piece of a prompt with its origin. */
export interface PromptPiece {
  readonly origin: PieceOrigin;
  readonly text: string;
}

/** An action and the environment's answer. */
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
  /** The actions that are valid now, if the environment lists them. */
  readonly admissible: readonly string[] | undefined;
  /** Number of this step, from 0. */
  readonly index: number;
  /** Lessons from earlier attempts at the same task (Reflexion). */
  readonly memory?: readonly string[];
}

/** An action, and whether its response had the requested form. */
export interface ParsedResponse {
  readonly action: string;
  readonly wellFormed: boolean;
}

/** A way to ask for an action and to parse the answer. */
export interface PromptStyle {
  readonly name: string;
  readonly family: PromptFamily;
  /** Whether a step's prompt, response and observation are the beginning of the next step's prompt. */
  readonly continuing: boolean;
  /** The text that ends a response and belongs to it; empty if the tokenizer's end token does. */
  readonly responseEnd: string;
  render(view: PromptView): readonly PromptPiece[];
  parse(response: string): ParsedResponse;
  /** The response a policy would write for this action, without `responseEnd`. */
  format(action: string, thought?: string): string;
  /** The observation as it follows a response, which a world model should predict. */
  continuation(observation: string, done: boolean): readonly PromptPiece[];
}

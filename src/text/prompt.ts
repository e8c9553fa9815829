/** Where a piece of a prompt came from. */
export type PieceOrigin = "template" | "task" | "history" | "observation" | "actions" | "memory";

/** A piece of a prompt with its origin. */
export interface PromptPiece {
  readonly origin: PieceOrigin;
  readonly text: string;
}

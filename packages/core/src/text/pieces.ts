/** Pieces: the parts of a prompt, and its text. */
import type { PieceOrigin, PromptPiece, PromptView } from "./prompt-style.js";

/** Adds a piece; an empty text adds nothing. */
export type Say = (origin: PieceOrigin, text: string) => void;

/** An empty list of pieces, and how to add to it. */
export function collector(): { readonly pieces: PromptPiece[]; readonly say: Say } {
  const pieces: PromptPiece[] = [];
  return {
    pieces,
    say: (origin, text) => {
      if (text !== "") pieces.push({ origin, text });
    },
  };
}

/** The text of a prompt; in a conversation, each message begins with its role. */
export function promptText(pieces: readonly PromptPiece[]): string {
  return pieces
    .map(({ text, role, origin }, at) => {
      const speaker = role ?? (origin === "tools" && at === 0 ? "tools" : undefined);
      return speaker === undefined ? text : `${at === 0 ? "" : "\n\n"}[${speaker}]\n${text}`;
    })
    .join("");
}

/** Lessons from earlier attempts, in prose. */
export function sayMemory({ memory }: PromptView, say: Say): void {
  if (memory === undefined || memory.length === 0) return;
  say("template", "\n\nWhat you noted after earlier attempts at this same task:\n");
  say("memory", memory.map((note) => `- ${note}`).join("\n"));
}

/** A number with its noun: 1 step, 2 steps. */
export function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}

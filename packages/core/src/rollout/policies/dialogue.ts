/**
 * Dialogues: what a chat model reads, turn by turn.
 *
 * Plain: the rendered prompt as one message, without earlier reasoning. ReAct: thoughts, actions
 * and observations interleaved; each past step is an answer of the model followed by the
 * environment's response. Reflexion: like ReAct, with the lessons of earlier attempts in the first
 * message.
 */

import { conversationOf, describeTools } from "../../text/conversation.js";
import {
  type PieceOrigin,
  type PromptPiece,
  type PromptStyle,
  type PromptView,
  promptText,
} from "../../text/prompt.js";
import type { ChatMessage } from "../../text/tokenizer.js";
import type { Episode, Step } from "../episode.js";

/** One turn of a dialogue, in pieces with their origins. */
export interface Turn {
  readonly role: ChatMessage["role"];
  readonly pieces: readonly PromptPiece[];
}

/** The rendered prompt, unchanged: one message, or the messages of a conversation. */
export function plainDialogue(prompt: readonly PromptPiece[]): readonly Turn[] {
  const { messages, tools } = conversationOf(prompt);
  // Endpoints take tools in many ways, but all take text.
  const described = tools === undefined ? messages : describeTools(messages, tools);
  return described.map(({ role, pieces }) => ({ role: role === "tool" ? "user" : role, pieces }));
}

/** Thoughts, actions and observations so far, interleaved. */
export function reactDialogue(
  style: PromptStyle,
  view: Omit<PromptView, "steps"> & { readonly steps: readonly Step[] },
): readonly Turn[] {
  const start: PromptView = {
    ...view,
    observation: view.firstObservation,
    steps: [],
    index: 0,
    // Admissible actions change with every step, so the last turn lists them.
    admissible: undefined,
  };
  const answerTo = (at: number, text: string): readonly PromptPiece[] => {
    const shown = piece(at === view.steps.length - 1 ? "observation" : "history", text);
    const [before, after] = style.around ?? ["", ""];
    return [piece("template", before), shown, piece("template", after)].filter(
      (one) => one.text !== "" || one === shown,
    );
  };
  // After the first step, the observation in the first message is history.
  const opening = style
    .render(start)
    .map((one) =>
      one.origin === "observation" && view.steps.length > 0 ? piece("history", one.text) : one,
    );
  const turns: Turn[] = [...plainDialogue(opening)];
  view.steps.forEach((step, at) => {
    turns.push({ role: "assistant", pieces: [piece("history", step.response)] });
    turns.push({ role: "user", pieces: answerTo(at, step.observation) });
  });
  const last = turns.at(-1) as Turn;
  if (view.admissible === undefined) return turns;
  const listed = [
    piece("template", "\n\nActions you can take now:\n"),
    piece("actions", view.admissible.join("\n")),
  ];
  return [...turns.slice(0, -1), { ...last, pieces: [...last.pieces, ...listed] }];
}

/** Asks for the lesson of a failed attempt. */
export function reflectionDialogue(episode: Episode, memory: readonly string[]): readonly Turn[] {
  const pieces = [
    piece("template", "You tried to reach this goal and did not:\n"),
    piece("task", episode.goal),
    piece("template", "\n\nWhat you saw at the start:\n"),
    piece("history", episode.firstObservation),
  ];
  for (const step of episode.steps) {
    pieces.push(piece("template", "\n\nYou did:\n"), piece("history", step.action));
    pieces.push(piece("template", "\nYou saw:\n"), piece("history", step.observation));
  }
  if (memory.length > 0) {
    pieces.push(piece("template", "\n\nWhat you had noted before this attempt:\n"));
    pieces.push(piece("memory", memory.map((note) => `- ${note}`).join("\n")));
  }
  pieces.push(
    piece(
      "template",
      "\n\nWhat went wrong, and what will you do differently in the next attempt at the very same task? Write a short note to yourself, at most four sentences, with the facts worth remembering. Write the note only.",
    ),
  );
  return [{ role: "user", pieces }];
}

/** The messages to send. */
export function messagesOf(turns: readonly Turn[]): readonly ChatMessage[] {
  return turns.map(({ role, pieces }) => ({ role, content: promptText(pieces) }));
}

/** The pieces to record: the turns one after another, each change of speaker marked. */
export function piecesOf(turns: readonly Turn[]): readonly PromptPiece[] {
  return turns.flatMap(({ role, pieces }, at) =>
    at === 0 ? pieces : [piece("template", `\n\n[${role}]\n`), ...pieces],
  );
}

function piece(origin: PieceOrigin, text: string): PromptPiece {
  return { origin, text };
}

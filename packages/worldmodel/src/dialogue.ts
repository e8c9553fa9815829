/**
 * Dialogues in tokens: opening, action, response, action, response, … An episode is one sequence,
 * and a world model's prompt for a response is a prefix of its prompt for the next.
 *
 * There are two forms. A tokenizer with the compact style's markers uses the same stream that
 * policies read (`<|goal|> <|note|> <|see|> <|do|>`), so that one model serves as both; the initial
 * state is a note. Any other tokenizer needs a chat template: the world is the assistant, and
 * actions are the user's messages.
 */
import { openingFrame, turnFrame } from "@pawl/core/text/chat-frame.js";
import {
  appendObservation,
  encodePrompt,
  encodeResponse,
  responseEndId,
  responseEndIds,
} from "@pawl/core/text/encode.js";
import { promptStyle } from "@pawl/core/text/prompt.js";
import { markers } from "@pawl/core/text/prompt-compact.js";
import { type Tokenizer, TokenizerError } from "@pawl/core/text/tokenizer.js";
import { type Opening, type Protocol, readResponse, responseText, systemText } from "./protocol.js";
import type { Outcome, Trajectory } from "./trajectory.js";

/** How a dialogue is encoded in tokens, and how a sampled response is parsed. */
export interface Dialogue {
  /** Everything before the first action. */
  opening(opening: Opening): readonly number[];
  /** An action, up to where the response begins. */
  action(action: string): readonly number[];
  /** A response with the token that ends it. */
  response(outcome: Outcome): readonly number[];
  /** Parses sampled tokens; without an end token the response never ended. */
  read(ids: readonly number[]): Outcome & { readonly ended: boolean };
  /** Tokens after which sampling stops. */
  readonly stop: readonly (readonly number[])[];
}

/** The form of dialogue that a tokenizer supports. */
export function createDialogue(tokenizer: Tokenizer, protocol: Protocol): Dialogue {
  const shown = (opening: Opening): Opening =>
    protocol.context ? opening : { ...opening, context: undefined };
  const isCompact = Object.values(markers).every((marker) => tokenizer.id(marker) !== undefined);
  if (!isCompact) return chatDialogue(tokenizer, protocol, shown);
  if (protocol.system === "own")
    throw new TokenizerError(
      "protocol.system: own needs a model with a chat template; this one reads markers and has no system message. Leave protocol.system out.",
    );
  return compactDialogue(tokenizer, protocol, shown);
}

function compactDialogue(
  tokenizer: Tokenizer,
  protocol: Protocol,
  shown: (opening: Opening) => Opening,
): Dialogue {
  // An environment changes how answers are parsed, never the stream.
  const style = promptStyle({}, { style: "compact", history: "all", admissible: false });
  const goOn = tokenizer.id(markers.action)!;
  const end = tokenizer.id(markers.end)!;
  const encode = (done: boolean) => (text: string) =>
    appendObservation({ ids: [], spans: [] }, tokenizer, style, text, done).ids;
  const inner = remembered(encode(false));
  const last = remembered(encode(true));
  return {
    opening(opening) {
      const { goal, context, firstObservation } = shown(opening);
      const view = { goal, firstObservation, observation: firstObservation, steps: [], index: 0 };
      const memory = context === undefined ? [] : [context];
      return encodePrompt(
        tokenizer,
        style,
        style.render({ ...view, memory, admissible: undefined }),
      ).ids;
    },
    action: remembered((action) => encodeResponse(tokenizer, style, action)),
    response: (outcome) => (outcome.done ? last : inner)(responseText(outcome, protocol)),
    read(ids) {
      const final = ids.at(-1);
      const ended = final === goOn || final === end;
      const text = tokenizer.decode(ended ? ids.slice(0, -1) : ids);
      return { ...readResponse(text, final === end, protocol), ended };
    },
    stop: [[goOn], [end]],
  };
}

function chatDialogue(
  tokenizer: Tokenizer,
  protocol: Protocol,
  shown: (opening: Opening) => Opening,
): Dialogue {
  const frame = chatFrame(tokenizer);
  const prose = promptStyle({}, { style: "full" });
  const endId = responseEndId(tokenizer, prose);
  const ends = responseEndIds(tokenizer, prose);
  const template = (text: string) => tokenizer.encode(text);
  const plain = (text: string) => tokenizer.encode(text, { plain: true });
  return {
    opening: (opening) => [
      ...template(frame.beforeSystem),
      ...plain(systemText(shown(opening), protocol)),
      ...template(frame.afterSystem),
    ],
    action: (action) => [
      ...template(frame.beforeUser),
      ...plain(action),
      ...template(frame.beforeAssistant),
    ],
    response: (outcome) => [...plain(responseText(outcome, protocol)), endId],
    read(ids) {
      const ended = ends.includes(ids.at(-1)!);
      const text = tokenizer.decode(ended ? ids.slice(0, -1) : ids);
      return { ...readResponse(text, false, protocol), ended };
    },
    stop: ends.map((end) => [end]),
  };
}

/** Cached encodings. */
const KEPT = 20_000;

/**
 * Worlds repeat themselves, and every question contains the whole history: texts are encoded once.
 */
function remembered(encode: (text: string) => readonly number[]) {
  const known = new Map<string, readonly number[]>();
  return (text: string): readonly number[] => {
    const before = known.get(text);
    if (before !== undefined) return before;
    if (known.size >= KEPT) known.clear();
    const ids = encode(text);
    known.set(text, ids);
    return ids;
  };
}

/** What a chat template writes around messages, one after another. */
function chatFrame(tokenizer: Tokenizer) {
  const shape = { opening: ["system", "user"], tools: undefined, replies: ["user"] } as const;
  const [beforeSystem, systemToUser, beforeAssistant] = openingFrame(
    tokenizer,
    shape.opening,
  ).texts;
  const frame = turnFrame(tokenizer, { ...shape, thought: false, calls: 0 });
  const { end, problem } = frame;
  const [beforeUser, after] = frame.texts as [string, string];
  if (
    problem !== undefined ||
    after !== beforeAssistant ||
    tokenizer.id(end) !== tokenizer.endId ||
    !systemToUser!.endsWith(beforeUser)
  ) {
    throw new TokenizerError(
      `A world model needs a chat template that writes system, user and assistant messages one after another and ends an answer with the tokenizer's end token; between the system's message and an action it wrote ${JSON.stringify(systemToUser)}, and between an answer and an action ${JSON.stringify(end + beforeUser)}.`,
    );
  }
  const afterSystem = systemToUser!.slice(0, systemToUser!.length - beforeUser.length);
  return { beforeSystem: beforeSystem!, afterSystem, beforeUser, beforeAssistant };
}

/** A trajectory in tokens, with the positions of its responses. */
export interface DialogueSequence {
  readonly ids: readonly number[];
  /** The response tokens `[start, end)` of each turn that fitted. */
  readonly responses: readonly { readonly start: number; readonly end: number }[];
}

/** A trajectory as one sequence, cut before the first turn that does not fit. */
export function dialogueSequence(
  dialogue: Dialogue,
  trajectory: Trajectory,
  maxTokens: number,
): DialogueSequence {
  const ids = [...dialogue.opening(trajectory)];
  const responses: { start: number; end: number }[] = [];
  for (const turn of trajectory.turns) {
    const action = dialogue.action(turn.action);
    const response = dialogue.response(turn);
    if (ids.length + action.length + response.length > maxTokens) break;
    for (const id of action) ids.push(id);
    const start = ids.length;
    for (const id of response) ids.push(id);
    responses.push({ start, end: ids.length });
    // A finished episode has no next action, whatever the record says.
    if (turn.done) break;
  }
  return { ids, responses };
}

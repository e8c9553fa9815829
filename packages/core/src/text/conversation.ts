/**
 * Conversations: the messages of a prompt in the model's own chat template, as pieces to encode.
 *
 * Where the template is append-only, a conversation is its frames one after another, and each
 * response stays as it was written. Where it is not, all of it is written as the template would,
 * without the reasoning that it drops, say; then the next step's tokens do not continue this one's.
 */
import {
  inForm,
  knowsTools,
  type OpeningFrame,
  openingFrame,
  probe,
  type TurnFrame,
  takesRoles,
  turnFrame,
  wholeFrame,
  writesCalls,
} from "./chat-frame.js";
import type { ToolsPiece } from "./prompt-chat.js";
import type { PromptPiece, PromptStyle, Role } from "./prompt-style.js";
import { splitThought } from "./response.js";
import { type Tokenizer, TokenizerError } from "./tokenizer.js";
import { type Tool, toolsText } from "./tool.js";

/** A message in pieces with their origins. */
export interface Message {
  readonly role: Role;
  readonly pieces: readonly PromptPiece[];
  readonly call?: string | undefined;
  /** How many tools an assistant's message calls. Default: one if `call` names it. */
  readonly calls?: number | undefined;
}

/** A prompt as messages. */
export interface Conversation {
  readonly tools?: ToolsPiece | undefined;
  readonly messages: readonly Message[];
}

/** The messages of a prompt; pieces without a role are one message of the user's. */
export function conversationOf(pieces: readonly PromptPiece[]): Conversation {
  const messages: { role: Role; pieces: PromptPiece[]; call: string | undefined }[] = [];
  let tools: ToolsPiece | undefined;
  for (const piece of pieces) {
    const { role, call, ...plain } = piece;
    if (role === undefined && piece.origin === "tools" && messages.length === 0)
      tools = JSON.parse(piece.text) as ToolsPiece;
    else if (role !== undefined || messages.length === 0)
      messages.push({ role: role ?? "user", pieces: [plain], call });
    else messages.at(-1)!.pieces.push(plain);
  }
  return { tools, messages };
}

/** Whether a prompt is a conversation. */
export function isConversation(pieces: readonly PromptPiece[]): boolean {
  return pieces.some(({ role }) => role !== undefined);
}

/** Whose answers follow a response, and what the response has. */
export interface Turn {
  readonly response: string;
  readonly replies: readonly Role[];
  /** How many well-formed tool calls the response makes. */
  readonly calls: number;
  readonly tools?: readonly Tool[] | undefined;
  /** Whether an earlier response has a thought, which a template may drop now. */
  readonly thought?: boolean;
}

/** What the template writes around the answers to a response. */
export function frameOfTurn(tokenizer: Tokenizer, turn: Turn): TurnFrame {
  const { response, replies, calls, tools } = turn;
  const native = tools !== undefined && knowsTools(tokenizer, tools) ? tools : undefined;
  const takesTool = takesRoles(tokenizer, ["user", "assistant", "tool"]);
  return turnFrame(tokenizer, {
    opening: openingRoles(tokenizer),
    tools: native,
    thought: turn.thought === true || hasThought(response),
    calls: takesTool && writesCalls(tokenizer) ? calls : 0,
    // A template without tools takes their answers as the user's.
    replies: replies.map((reply) => (reply === "tool" && !takesTool ? "user" : reply)),
  });
}

/**
 * What is to be said before a run in this style, if the chat template is not append-only; a
 * template that cannot hold a conversation is an error.
 */
export function conversationNotice(
  tokenizer: Tokenizer,
  style: Pick<PromptStyle, "name" | "continuing">,
): string | undefined {
  if (style.name !== "chat") return undefined;
  const problemOf = (response: string) =>
    frameOfTurn(tokenizer, { response, replies: ["user"], calls: 0 }).problem;
  const always = problemOf("");
  const afterThought = problemOf("<think></think>");
  if (!style.continuing || (always ?? afterThought) === undefined) return undefined;
  return always === undefined
    ? `the model's chat template is not append-only after a response with reasoning: ${afterThought}. Such a step's conversation is rendered whole and starts a sequence of its own.`
    : `the model's chat template is not append-only: ${always}. Every step's conversation is rendered whole and is a sequence of its own, which costs more to sample and to learn.`;
}

const openingRoles = (tokenizer: Tokenizer): readonly Role[] =>
  takesRoles(tokenizer, ["system", "user"]) ? ["system", "user"] : ["user"];

/** The prompt in the template, up to where the model should answer. */
export function inConversation(
  tokenizer: Tokenizer,
  pieces: readonly PromptPiece[],
): readonly PromptPiece[] {
  return conversationPieces(tokenizer, conversationOf(pieces));
}

/** The conversation in the template, up to where the model should answer. */
export function conversationPieces(
  tokenizer: Tokenizer,
  conversation: Conversation,
): readonly PromptPiece[] {
  const { messages, tools } = prepared(tokenizer, conversation);
  if (messages.at(-1)?.role === "assistant")
    throw new TokenizerError(
      `a conversation should end with a message that the model answers; it has ${messages.map(({ role }) => role).join(", ")}`,
    );
  const { opening, turns } = turnsOf(messages);
  const frames: TurnFrame[] = [];
  let thought = false;
  for (const { answer, replies } of turns) {
    // Two responses one after another have no frame: the template decides how to write them.
    if (replies.length === 0) return written(tokenizer, messages, tools);
    const response = textOf(answer.pieces);
    thought ||= hasThought(response);
    const roles = replies.map(({ role }) => role);
    const turn = { response, replies: roles, calls: callsOf(answer), tools, thought };
    const frame = frameOfTurn(tokenizer, turn);
    if (frame.problem !== undefined) return written(tokenizer, messages, tools);
    frames.push(frame);
  }
  const first = openingFrame(
    tokenizer,
    opening.map(({ role }) => role),
    tools,
  );
  return [
    ...framedMessages(opening, first),
    ...frames.flatMap((frame, at) => [
      ...turns[at]!.answer.pieces,
      template(frame.end),
      ...framedMessages(turns[at]!.replies, frame),
    ]),
  ];
}

/** Whether a response has a closed thought. */
export function hasThought(response: string): boolean {
  return splitThought(response).thought !== undefined;
}

const template = (text: string): PromptPiece => ({ origin: "template", text });

/** The contents of messages with what the template writes before, between and after them. */
export function framedMessages(
  messages: readonly Message[],
  { texts, forms }: OpeningFrame,
): readonly PromptPiece[] {
  return [
    ...messages.flatMap((message, at) => [
      template(texts[at]!),
      ...inForm(message.pieces, forms[at]!),
    ]),
    template(texts.at(-1)!),
  ];
}

const callsOf = ({ calls, call }: Message): number => calls ?? (call === undefined ? 0 : 1);

/** Messages before the first response, and each response with what answers it. */
function turnsOf(messages: readonly Message[]): {
  readonly opening: readonly Message[];
  readonly turns: readonly { readonly answer: Message; readonly replies: readonly Message[] }[];
} {
  const opening: Message[] = [];
  const turns: { answer: Message; replies: Message[] }[] = [];
  for (const message of messages)
    if (message.role === "assistant") turns.push({ answer: message, replies: [] });
    else (turns.at(-1)?.replies ?? opening).push(message);
  return { opening, turns };
}

/**
 * The conversation as the template takes it: tools that it does not know are in the system message,
 * and a system message that it refuses is in the user's.
 */
function prepared(
  tokenizer: Tokenizer,
  { tools, messages }: Conversation,
): { readonly tools: readonly Tool[] | undefined; readonly messages: readonly Message[] } {
  const native = tools !== undefined && knowsTools(tokenizer, tools.tools);
  const described = tools === undefined || native ? messages : describeTools(messages, tools);
  const [system, user, ...rest] = described;
  const isTaken = system?.role !== "system" || takesRoles(tokenizer, ["system", "user"]);
  const joined =
    isTaken || user === undefined
      ? described
      : [{ ...user, pieces: [...system.pieces, breakLine, ...user.pieces] }, ...rest];
  return { tools: native ? tools.tools : undefined, messages: asTurns(tokenizer, joined) };
}

/** The messages as a template takes them that refuses two of the user's one after another. */
export function asTurns(tokenizer: Tokenizer, messages: readonly Message[]): readonly Message[] {
  if (takesRoles(tokenizer, ["user", "user"])) return messages;
  const isTool = takesRoles(tokenizer, ["user", "assistant", "tool"]);
  const isUser = ({ role }: Message) => role === "user" || (role === "tool" && !isTool);
  const joined: Message[] = [];
  for (const message of messages) {
    const last = joined.at(-1);
    if (last === undefined || !isUser(last) || !isUser(message)) joined.push(message);
    else
      joined[joined.length - 1] = {
        ...last,
        pieces: [...last.pieces, breakLine, ...message.pieces],
      };
  }
  return joined;
}

const breakLine: PromptPiece = { origin: "template", text: "\n\n" };

/** The messages with the tools in words, in the system message. */
export function describeTools(
  messages: readonly Message[],
  { tools, how }: ToolsPiece,
): readonly Message[] {
  const offer: PromptPiece = { origin: "tools", text: `${toolsText(tools)}\n${how}` };
  const [first, ...rest] = messages;
  return first?.role === "system"
    ? [{ ...first, pieces: [...first.pieces, breakLine, offer] }, ...rest]
    : [{ role: "system", pieces: [offer] } as const, ...messages];
}

/** The conversation as the template writes all of it, with what it drops left out. */
function written(
  tokenizer: Tokenizer,
  messages: readonly Message[],
  tools: readonly Tool[] | undefined,
): readonly PromptPiece[] {
  const parts = messages.map(({ role, pieces }) => {
    const split = role === "assistant" ? splitThought(textOf(pieces)) : undefined;
    return { role, pieces, split };
  });
  const takesTool = takesRoles(tokenizer, ["user", "assistant", "tool"]);
  const text = wholeFrame(
    tokenizer,
    parts.map(({ role, split }) => ({
      role: role === "tool" && !takesTool ? "user" : role,
      thought: split?.thought !== undefined,
    })),
    tools,
  );
  const framed: PromptPiece[] = [];
  let from = 0;
  for (const match of text.matchAll(/Zq(\d+)(Probe|Thought)/g)) {
    const part = parts[Number(match[1])]!;
    framed.push({ origin: "template", text: text.slice(from, match.index) });
    if (part.split === undefined) framed.push(...part.pieces);
    else if (match[2] === "Probe") framed.push({ origin: "history", text: part.split.rest.trim() });
    else framed.push({ origin: "history", text: thoughtText(part.split.thought!) });
    from = match.index + match[0].length;
  }
  framed.push({ origin: "template", text: text.slice(from) });
  const missing = parts.findIndex((_, at) => !text.includes(probe(at)));
  if (missing >= 0 && parts[missing]!.role !== "assistant")
    throw new TokenizerError(
      `The tokenizer's chat template leaves out message ${missing + 1}, the ${parts[missing]!.role}'s. It wrote: ${text.slice(0, 200)}`,
    );
  return framed;
}

/** What stands between the tags of a thought. */
function thoughtText(thought: string): string {
  return thought
    .replace(/^\s*<think>/, "")
    .replace(/<\/think>$/, "")
    .trim();
}

const textOf = (pieces: readonly PromptPiece[]): string => pieces.map(({ text }) => text).join("");

/**
 * The prompt with its oldest turns dropped, so that this many are left: what is seen at the cut
 * takes the place of the first observation.
 */
export function lastTurns(pieces: readonly PromptPiece[], keep: number): readonly PromptPiece[] {
  const starts = pieces.flatMap(({ role }, at) => (role === "assistant" ? [at] : []));
  const dropped = starts.length - keep;
  if (dropped <= 0) return pieces;
  const [first] = starts;
  const user = pieces.findIndex(({ role }) => role === "user");
  const seen = pieces.findIndex(({ origin }, at) => at >= user && at < first! && isSeen(origin));
  const reply = pieces.findIndex(({ role }, at) => at > starts[dropped - 1]! && role !== undefined);
  const next = starts[dropped] ?? pieces.length;
  return [
    ...(seen < 0 ? [...pieces.slice(0, first), breakLine] : pieces.slice(0, seen)),
    ...pieces.slice(reply, next).map(({ role: _, call: __, ...piece }) => piece),
    ...(seen < 0 ? [] : pieces.slice(seen + 1, first)),
    ...pieces.slice(next),
  ];
}

const isSeen = (origin: PromptPiece["origin"]): boolean =>
  origin === "observation" || origin === "history";

/** How many turns a prompt shows. */
export function turnsIn(pieces: readonly PromptPiece[]): number {
  return pieces.filter(({ role }) => role === "assistant").length;
}

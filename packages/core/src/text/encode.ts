/**
 * Encodes a step: prompt, response and observation become one sequence of token ids with spans.
 *
 * What stands between two responses is encoded as one text, so that its ids are those that other
 * programs give it. A response is encoded by itself, as it is sampled, and keeps the ids that were
 * sampled: text is never tokenised again between sampling and training.
 */
import { inForm, openingFrame, type TurnFrame } from "./chat-frame.js";
import type { Constraint } from "./constraint.js";
import { frameOfTurn, inConversation, isConversation, lastTurns, turnsIn } from "./conversation.js";
import type { PromptPiece, PromptStyle } from "./prompt-style.js";
import type { Sequence, Span, SpanKind } from "./sequence.js";
import { type Tokenizer, TokenizerError } from "./tokenizer.js";
import type { Tool } from "./tool.js";

/** What a policy sampled: ids and, if known, the log-probability of each. */
export interface SampledResponse {
  readonly ids: readonly number[];
  readonly logprobs?: readonly number[];
  readonly sampledLogprobs?: readonly number[];
  /** Default 1. */
  readonly temperature?: number | undefined;
  /** What it was held to. */
  readonly constraint?: Constraint | undefined;
}

/** The prompt as a sequence; conversations and prose are put into the tokenizer's chat template. */
export function encodePrompt(
  tokenizer: Tokenizer,
  style: PromptStyle,
  pieces: readonly PromptPiece[],
): Sequence {
  const none = { ids: [], spans: [] };
  return appendPieces(none, tokenizer, style, ofKind("prompt", framed(tokenizer, style, pieces)));
}

function framed(
  tokenizer: Tokenizer,
  style: PromptStyle,
  pieces: readonly PromptPiece[],
): readonly PromptPiece[] {
  if (style.responseEnd !== "") return pieces;
  if (!isConversation(pieces))
    return tokenizer.hasChatTemplate ? inDialogue(tokenizer, pieces) : pieces;
  if (tokenizer.hasChatTemplate || style.name === "chat") return inConversation(tokenizer, pieces);
  return pieces.map((piece, at) =>
    piece.role === undefined || at === 0 ? piece : { ...piece, text: `\n\n${piece.text}` },
  );
}

/** A step as the next prompt continues from it. */
export interface LastStep {
  readonly sequence?: Sequence | undefined;
  readonly prompt: readonly PromptPiece[];
  readonly response: string;
  readonly action: string;
  readonly observation: string;
}

/** A prompt in tokens; `pieces` if it shows less than was rendered. */
export interface EncodedPrompt {
  readonly sequence: Sequence;
  readonly pieces?: readonly PromptPiece[];
}

/**
 * The prompt of a step: made from the last step's own tokens where the style continues them, and
 * encoded from its pieces elsewhere. A conversation that has become too long loses its oldest
 * turns, down to half of what is allowed, so that it can be continued again for a while.
 */
export function stepPrompt(
  tokenizer: Tokenizer,
  style: PromptStyle,
  render: () => readonly PromptPiece[],
  last: LastStep | undefined,
  tools?: readonly Tool[],
): EncodedPrompt {
  const known =
    style.continuing && last?.sequence !== undefined
      ? nextPrompt(tokenizer, style, last.sequence, last, tools)
      : undefined;
  const { promptTokens: most } = style;
  if (most === undefined) return { sequence: known ?? encodePrompt(tokenizer, style, render()) };
  const rendered = render();
  let pieces = lastTurns(rendered, last === undefined ? 0 : turnsIn(last.prompt) + 1);
  let sequence = known ?? encodePrompt(tokenizer, style, pieces);
  if (sequence.ids.length > most) {
    for (let keep = turnsIn(pieces) - 1; keep >= 0 && sequence.ids.length > most / 2; keep--) {
      // From what was rendered, so that the next step, which cuts once, drops the same.
      pieces = lastTurns(rendered, keep);
      sequence = encodePrompt(tokenizer, style, pieces);
    }
  }
  return { sequence, pieces };
}

/**
 * The prompt after a step, in a style whose prompts continue one another: equal to `encodePrompt`,
 * but made from the step's own tokens. Undefined if the history is written with other tokens than
 * were sampled.
 */
export function nextPrompt(
  tokenizer: Tokenizer,
  style: PromptStyle,
  { ids, spans }: Sequence,
  { response, action, observation }: Omit<LastStep, "prompt" | "sequence">,
  tools?: readonly Tool[],
): Sequence | undefined {
  const at = spans.findLastIndex(({ kind }) => kind === "action");
  const { start, end } = spans[at]!;
  if (style.responseEnd !== "")
    return isWritten() ? readAgain(tokenizer, { ids, spans }, false) : undefined;
  const frame = frameOfResponse(tokenizer, style, response, tools);
  if (frame.problem !== undefined) return undefined;
  const answered = { ids: ids.slice(0, end), spans: spans.slice(0, at + 1) };
  const pieces = inForm(style.continuation(observation, false, tools), frame.forms[0]!);
  return appendTurn(answered, tokenizer, style, frame, observed(pieces)).next();

  /** Whether the history writes the action with the tokens that were sampled. */
  function isWritten(): boolean {
    const written = encodeResponse(tokenizer, style, action);
    return written.length === end - start && written.every((id, i) => id === ids[start + i]);
  }
}

/** A step's tokens as the beginning of a prompt: what was seen and said is history now. */
function readAgain(tokenizer: Tokenizer, { ids, spans }: Sequence, isChat: boolean): Sequence {
  const at = spans.findLastIndex(({ kind }) => kind === "action");
  const { start, end } = spans[at]!;
  const read = spans.slice(0, at).map((span) =>
    // The observation is history now; nothing else has changed, so the other spans are reused.
    span.origin === "observation" ? { ...span, origin: "history" } : span,
  );
  // The token that ends a response belongs to the template.
  const ended = !isChat || tokenizer.endIds.includes(ids[end - 1]!);
  const said = ended ? end - 1 : end;
  if (said > start) read.push({ kind: "prompt", start, end: said, origin: "history" });
  if (ended) read.push({ kind: "prompt", start: said, end, origin: "template" });
  for (const span of spans.slice(at + 1)) read.push({ ...span, kind: "prompt" });
  return { ids, spans: read };
}

function frameOfResponse(
  tokenizer: Tokenizer,
  style: PromptStyle,
  response: string,
  tools: readonly Tool[] | undefined,
) {
  const reply = tools === undefined ? "user" : "tool";
  const calls = tools !== undefined && style.parse(response, tools).wellFormed ? 1 : 0;
  return frameOfTurn(tokenizer, { response, replies: [reply], calls, tools });
}

/**
 * The ids of the response a policy would have written, including its end, for supervised learning.
 */
export function encodeResponse(
  tokenizer: Tokenizer,
  style: PromptStyle,
  response: string,
): readonly number[] {
  return [...tokenizer.encode(response, { plain: true }), responseEndId(tokenizer, style)];
}

/** The text of sampled ids, without the token that ends a response. */
export function decodeResponse(
  tokenizer: Tokenizer,
  style: PromptStyle,
  ids: readonly number[],
): string {
  const ended = responseEndIds(tokenizer, style).includes(ids.at(-1)!);
  return tokenizer.decode(ended ? ids.slice(0, -1) : ids);
}

/** The tokens at which sampling stops in this style: a chat model may have several end tokens. */
export function responseEndIds(tokenizer: Tokenizer, style: PromptStyle): readonly number[] {
  const written = responseEndId(tokenizer, style);
  return style.responseEnd === "" ? tokenizer.endIds : [written];
}

/** The token that ends a response in this style. */
export function responseEndId(tokenizer: Tokenizer, style: PromptStyle): number {
  const id = style.responseEnd === "" ? tokenizer.endId : tokenizer.id(style.responseEnd);
  if (id === undefined) {
    throw new TokenizerError(
      style.responseEnd === ""
        ? `The prompt style ${style.name} ends a response with the tokenizer's end token, but this tokenizer has none (eos_token in tokenizer_config.json).`
        : `The prompt style ${style.name} ends a response with ${style.responseEnd}, which is not a token of this tokenizer: only models from scratch have it. Use --prompt.style full or chat, or a tokenizer made by buildTokenizer.`,
    );
  }
  return id;
}

/** The sequence followed by the response, with exactly the sampled ids. */
export function appendResponse(sequence: Sequence, response: SampledResponse): Sequence {
  const { ids, logprobs, sampledLogprobs, temperature = 1, constraint } = response;
  for (const [name, values] of Object.entries({ logprobs, sampledLogprobs })) {
    if (values !== undefined && values.length !== ids.length) {
      throw new RangeError(
        `A response of ${ids.length} tokens came with ${values.length} ${name}; expected one for each token.`,
      );
    }
  }
  const joined = (before: readonly number[] | undefined, after: readonly number[] | undefined) =>
    after === undefined ? before : [...(before ?? []), ...after];
  const all = joined(sequence.logprobs, logprobs);
  const sampled = joined(sequence.sampledLogprobs, sampledLogprobs);
  const answered = append(sequence, ids, "action", "policy");
  return {
    ids: answered.ids,
    spans: answered.spans,
    ...(all && { logprobs: all }),
    ...(sampled && { sampledLogprobs: sampled }),
    ...(temperature !== 1 && { temperature }),
    ...(constraint && { constraint }),
  };
}

/** What the environment's answer answers; it decides how a chat template writes it. */
export interface Answered {
  readonly response: string;
  readonly tools?: readonly Tool[] | undefined;
}

/** The sequence followed by the environment's answer, which a world model should predict. */
export function appendObservation(
  sequence: Sequence,
  tokenizer: Tokenizer,
  style: PromptStyle,
  observation: string,
  done: boolean,
  { response, tools }: Answered = { response: "" },
): Sequence {
  const pieces = style.continuation(observation, done, tools);
  if (isConversation(pieces)) {
    const frame = frameOfResponse(tokenizer, style, response, tools);
    const answer = observed(inForm(pieces, frame.forms[0]!));
    return appendTurn(sequence, tokenizer, style, frame, answer).observed;
  }
  const { observationEnd: end } = style;
  if (style.responseEnd === "") {
    const seen = appendPieces(sequence, tokenizer, style, ofKind("observation", pieces));
    if (end !== "learnt" || tokenizer.endId === undefined) return seen;
    return append(seen, [tokenizer.endId], "observation", "template");
  }
  return appendPieces(
    sequence,
    tokenizer,
    style,
    end === "read" ? observed(pieces) : ofKind("observation", pieces),
  );
}

/** A piece of a step, and what its tokens are. */
export interface StepPiece extends PromptPiece {
  readonly kind: SpanKind;
}

/** The pieces as tokens of one kind. */
export const ofKind = (kind: SpanKind, pieces: readonly PromptPiece[]): readonly StepPiece[] =>
  pieces.map((piece) => ({ ...piece, kind }));

/** The pieces of an answer: what the world says is learnt, and what stands around it is not. */
const observed = (pieces: readonly PromptPiece[]): readonly StepPiece[] =>
  pieces.map((piece) => ({
    ...piece,
    kind: piece.origin === "template" ? "template" : "observation",
  }));

/** How pieces become tokens. */
export type TokenForm = Pick<PromptStyle, "observationEnd" | "tokens" | "around">;

/** A response with what answers it. */
export interface AnsweredTurn {
  readonly observed: Sequence;
  /** The prompt that follows, in a template that is append-only. */
  next(): Sequence;
}

/**
 * The sequence of a response followed by what answers it, in the template's frame. The token that
 * ends the answer's message is part of the observation if it stands right after it.
 */
export function appendTurn(
  answered: Sequence,
  tokenizer: Tokenizer,
  form: TokenForm,
  { end, texts }: Pick<TurnFrame, "end" | "texts">,
  answer: readonly StepPiece[],
): AnsweredTurn {
  // A response that was cut off is ended here.
  const ended = tokenizer.endIds.includes(answered.ids.at(-1)!);
  const template = (text: string): PromptPiece => ({ origin: "template", text });
  const shown = [
    ...ofKind("template", [template(ended ? "" : end), template(texts[0]!)]),
    ...answer,
  ].filter(({ text }) => text !== "");
  // What comes next is encoded with it, because a token may reach across the end of the answer.
  const after = ofKind("prompt", [template(texts.at(-1)!)]);
  const whole = appendPieces(answered, tokenizer, form, [...shown, ...after]);
  const last = whole.spans.at(-1)!;
  const start = last.kind === "prompt" ? last.start : whole.ids.length;
  const isEnded = learnsEnd(form) && tokenizer.endIds.includes(whole.ids[start]!);
  const closing: readonly Span[] = isEnded
    ? [{ ...last, kind: "observation", end: start + 1 }]
    : [];
  return {
    observed: {
      ...whole,
      ids: whole.ids.slice(0, isEnded ? start + 1 : start),
      spans: [...whole.spans.filter((span) => span.end <= start), ...closing],
    },
    next: () => readAgain(tokenizer, whole, true),
  };
}

/** Whether the end of an observation is learnt; it cannot be where other words follow it. */
const learnsEnd = ({ observationEnd, around }: TokenForm): boolean =>
  observationEnd === "learnt" && !around?.[1];

/** What is to be said before observations are learnt in a conversation without their end. */
export function observationEndNotice(tokenizer: Tokenizer, style: PromptStyle): string | undefined {
  if (style.name !== "chat" || style.observationEnd !== "learnt") return undefined;
  const { texts } = frameOfResponse(tokenizer, style, "", undefined);
  const after = style.around?.[1] || texts.at(-1)!;
  if (tokenizer.endIds.includes(tokenizer.encode(after)[0]!)) return undefined;
  return `after an observation comes ${JSON.stringify(after)}, which does not begin with a token that ends a message: the ends of observations are not learnt`;
}

/** The sequence followed by pieces; a token across two of them belongs to the one it begins in. */
export function appendPieces(
  start: Sequence,
  tokenizer: Tokenizer,
  { tokens }: Pick<TokenForm, "tokens">,
  pieces: readonly StepPiece[],
): Sequence {
  // Only templates may contain special tokens; text from the world or the policy is always plain.
  const encoded = tokenizer.encodeParts(
    pieces.map(({ origin, text }) => ({ text, special: origin === "template" })),
    { apart: tokens === "pieces", after: start.ids.at(-1) },
  );
  const first = start.ids.length;
  const spans = [...start.spans];
  let from = 0;
  pieces.forEach(({ kind, origin }, i) => {
    const end = encoded.ends[i]!;
    if (end > from) spans.push({ kind, start: first + from, end: first + end, origin });
    from = end;
  });
  return { ...start, ids: [...start.ids, ...encoded.ids], spans };
}

function append(start: Sequence, ids: readonly number[], kind: SpanKind, origin: string): Sequence {
  if (ids.length === 0) return start;
  const from = start.ids.length;
  const span: Span = { kind, start: from, end: from + ids.length, origin };
  return { ...start, ids: [...start.ids, ...ids], spans: [...start.spans, span] };
}

/** The pieces as a user's message, up to where the model should answer. */
function inDialogue(tokenizer: Tokenizer, pieces: readonly PromptPiece[]): readonly PromptPiece[] {
  const [before, after] = openingFrame(tokenizer, ["user"]).texts;
  return [{ origin: "template", text: before! }, ...pieces, { origin: "template", text: after! }];
}

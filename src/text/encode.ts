/**
 * Encodes a step: prompt, response and observation become one sequence of token ids with spans.
 *
 * Every piece is encoded separately, so its ids do not depend on its neighbours, and a sampled
 * response keeps the ids that were sampled: text is never tokenised again between sampling and
 * training.
 */
import { inForm, openingFrame } from "./chat-frame.js";
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
}

/** The prompt as a sequence; conversations and prose are put into the tokenizer's chat template. */
export function encodePrompt(
  tokenizer: Tokenizer,
  style: PromptStyle,
  pieces: readonly PromptPiece[],
): Sequence {
  return appendPieces(
    { ids: [], spans: [] },
    tokenizer,
    "prompt",
    framed(tokenizer, style, pieces),
  );
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
  let pieces = lastTurns(render(), last === undefined ? 0 : turnsIn(last.prompt) + 1);
  let sequence = known ?? encodePrompt(tokenizer, style, pieces);
  if (sequence.ids.length > most) {
    for (let keep = turnsIn(pieces) - 1; keep >= 0 && sequence.ids.length > most / 2; keep--) {
      pieces = lastTurns(pieces, keep);
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
  { response, action }: Pick<LastStep, "response" | "action">,
  tools?: readonly Tool[],
): Sequence | undefined {
  const at = spans.findLastIndex(({ kind }) => kind === "action");
  const { start, end } = spans[at]!;
  const isChat = style.responseEnd === "";
  const frame = isChat ? frameOfResponse(tokenizer, style, response, tools) : undefined;
  if (isChat ? frame!.problem !== undefined : !isWritten()) return undefined;
  const next = readAgain(tokenizer, { ids, spans }, isChat);
  if (frame === undefined) return next;
  return appendPieces(next, tokenizer, "prompt", [
    { origin: "template", text: frame.texts.at(-1)! },
  ]);

  /** Whether the history writes the action with the tokens that were sampled. */
  function isWritten(): boolean {
    const written = encodeResponse(tokenizer, style, action);
    return written.length === end - start && written.every((id, i) => id === ids[start + i]);
  }
}

/** A step's tokens as the beginning of a prompt: what was seen and said is history now. */
export function readAgain(
  tokenizer: Tokenizer,
  { ids, spans }: Sequence,
  isChat: boolean,
): Sequence {
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
  const { ids, logprobs, sampledLogprobs, temperature = 1 } = response;
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
  if (!isConversation(pieces)) return appendPieces(sequence, tokenizer, "observation", pieces);
  const { end, texts, forms } = frameOfResponse(tokenizer, style, response, tools);
  // A response that was cut off is ended here.
  const ended = tokenizer.endIds.includes(sequence.ids.at(-1)!);
  const opened = appendPieces(sequence, tokenizer, "template", [
    { origin: "template", text: ended ? "" : end },
    { origin: "template", text: texts[0]! },
  ]);
  return inForm(pieces, forms[0]!).reduce(
    (whole, piece) =>
      appendPieces(whole, tokenizer, piece.origin === "template" ? "template" : "observation", [
        piece,
      ]),
    opened,
  );
}

/** The sequence followed by pieces, as spans of one kind. */
export function appendPieces(
  start: Sequence,
  tokenizer: Tokenizer,
  kind: SpanKind,
  pieces: readonly PromptPiece[],
): Sequence {
  const ids = [...start.ids];
  const spans = [...start.spans];
  for (const { origin, text } of pieces) {
    // Only templates may contain special tokens; text from the world or the policy is always plain.
    const piece = tokenizer.encode(text, { plain: origin !== "template" });
    if (piece.length === 0) continue;
    const from = ids.length;
    for (const id of piece) ids.push(id);
    spans.push({ kind, start: from, end: ids.length, origin });
  }
  return { ...start, ids, spans };
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

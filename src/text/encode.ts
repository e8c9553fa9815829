/**
 * Encodes a step: prompt, response and observation become one sequence of token ids with spans.
 *
 * Every piece is encoded separately, so its ids do not depend on its neighbours, and a sampled
 * response keeps the ids that were sampled: text is never tokenised again between sampling and
 * training.
 */
import type { PromptPiece, PromptStyle } from "./prompt.js";
import type { Sequence, Span, SpanKind } from "./sequence.js";
import { type Tokenizer, TokenizerError } from "./tokenizer.js";

/** What a policy sampled: ids and, if known, the log-probability of each. */
export interface SampledResponse {
  readonly ids: readonly number[];
  readonly logprobs?: readonly number[];
  readonly sampledLogprobs?: readonly number[];
  /** Default 1. */
  readonly temperature?: number | undefined;
}

/** The prompt as a sequence; prose styles are put into the tokenizer's chat template. */
export function encodePrompt(
  tokenizer: Tokenizer,
  style: PromptStyle,
  pieces: readonly PromptPiece[],
): Sequence {
  const framed =
    style.responseEnd === "" && tokenizer.hasChatTemplate ? inDialogue(tokenizer, pieces) : pieces;
  return appendPieces({ ids: [], spans: [] }, tokenizer, "prompt", framed);
}

/**
 * The prompt after a step, in a style whose prompts continue one another: equal to `encodePrompt`,
 * but made from the step's own tokens. Undefined if the history writes the action with other tokens
 * than were sampled.
 */
export function nextPrompt(
  tokenizer: Tokenizer,
  style: PromptStyle,
  { ids, spans }: Sequence,
  action: string,
): Sequence | undefined {
  const at = spans.findLastIndex(({ kind }) => kind === "action");
  const { start, end } = spans[at]!;
  const written = encodeResponse(tokenizer, style, action);
  if (written.length !== end - start) return undefined;
  if (written.some((id, i) => id !== ids[start + i])) return undefined;
  const read = spans.slice(0, at).map((span) =>
    // The observation is history now; nothing else has changed, so the other spans are reused.
    span.origin === "observation" ? { ...span, origin: "history" } : span,
  );
  // The token that ends a response belongs to the template.
  if (end - start > 1) read.push({ kind: "prompt", start, end: end - 1, origin: "history" });
  read.push({ kind: "prompt", start: end - 1, end, origin: "template" });
  for (const span of spans.slice(at + 1)) read.push({ ...span, kind: "prompt" });
  return { ids, spans: read };
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
        : `The prompt style ${style.name} ends a response with ${style.responseEnd}, which is not a token of this tokenizer. Use a tokenizer made by buildTokenizer, or the full style.`,
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

/** The sequence followed by the environment's answer, which a world model should predict. */
export function appendObservation(
  sequence: Sequence,
  tokenizer: Tokenizer,
  style: PromptStyle,
  observation: string,
  done: boolean,
): Sequence {
  return appendPieces(sequence, tokenizer, "observation", style.continuation(observation, done));
}

function appendPieces(
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

const frames = new WeakMap<Tokenizer, readonly [before: string, after: string]>();

/** The pieces as a user's message, up to where the model should answer. */
function inDialogue(tokenizer: Tokenizer, pieces: readonly PromptPiece[]): readonly PromptPiece[] {
  const [before, after] = frames.get(tokenizer) ?? dialogueFrame(tokenizer);
  return [{ origin: "template", text: before }, ...pieces, { origin: "template", text: after }];
}

/** What the chat template writes before and after a message, found by rendering a unique one. */
function dialogueFrame(tokenizer: Tokenizer): readonly [before: string, after: string] {
  const probe = "the-prompt-stands-here";
  const text = tokenizer.chat([{ role: "user", content: probe }], { addGenerationPrompt: true });
  const [before, after, ...more] = text.split(probe);
  if (before === undefined || after === undefined || more.length > 0) {
    throw new TokenizerError(
      `The tokenizer's chat template does not contain a user's message exactly once and unchanged, so a prompt cannot be put into it. It wrote: ${text.slice(0, 200)}`,
    );
  }
  const frame = [before, after] as const;
  frames.set(tokenizer, frame);
  return frame;
}

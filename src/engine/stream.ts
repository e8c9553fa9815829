/** An answer of a model as it is written: sampled in small pieces, each continuing the one before. */
import { mixSeed } from "../random.js";
import type { Tokenizer } from "../text/tokenizer.js";
import { type Engine, EngineError } from "./engine.js";

/** Tokens per piece: few enough to look like writing, enough to be worth a call. */
const PIECE = 4;

/** How to answer. */
export interface StreamOptions {
  readonly maxTokens: number;
  readonly temperature: number;
  readonly seed: number;
  readonly signal?: AbortSignal;
}

/**
 * Yields the text that follows the prompt, piece by piece, up to a token that ends a turn. A
 * character is yielded only when all its bytes are there.
 */
export async function* streamAnswer(
  engine: Engine,
  tokenizer: Tokenizer,
  prompt: readonly number[],
  { maxTokens, temperature, seed, signal }: StreamOptions,
): AsyncGenerator<string, "stop" | "length"> {
  const room = engine.capabilities.maxContext - prompt.length;
  if (room < 1)
    throw new EngineError(
      `the text has ${prompt.length} tokens, but the model's context has only ${engine.capabilities.maxContext}; begin anew`,
    );
  const limit = Math.min(maxTokens, room);
  const tokens: number[] = [];
  let shown = "";
  for (let ended = false; !ended && tokens.length < limit; ) {
    signal?.throwIfAborted();
    const [samples] = await engine.sample([
      {
        prompt: [...prompt, ...tokens],
        maxTokens: Math.min(PIECE, limit - tokens.length),
        temperature,
        stop: tokenizer.endIds.map((id) => [id]),
        continued: true,
        seed: mixSeed(seed, "piece", tokens.length),
      },
    ]);
    const sample = samples![0]!;
    ended = sample.stopReason === "stop";
    tokens.push(...sample.tokens);
    const text = tokenizer.decode(ended ? tokens.slice(0, -1) : tokens);
    // An unfinished character is decoded as a replacement character.
    const whole = ended ? text : text.replace(/\uFFFD+$/, "");
    if (whole.length > shown.length) yield whole.slice(shown.length);
    shown = whole;
    if (ended) return "stop";
  }
  return "length";
}

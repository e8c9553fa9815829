/** The vocabulary in a GGUF file's metadata. */
import type { Metadata } from "./gguf-metadata.js";

/** Types of tokens other than normal ones. */
export const TOKEN_TYPE = { unknown: 2, control: 3, userDefined: 4, byte: 6 } as const;

/** The tokens of a file and their types. */
export interface GgufVocabulary {
  readonly metadata: Metadata;
  readonly tokens: readonly string[];
  readonly types: ArrayLike<number>;
}

/** What of tokenizer.json depends on the kind of tokenizer. */
export interface TokenizerParts {
  readonly normalizer: unknown;
  readonly pre_tokenizer: unknown;
  readonly decoder: unknown;
  readonly model: Readonly<Record<string, unknown>>;
}

/** Reads and checks the vocabulary. */
export function readVocabulary(metadata: Metadata): GgufVocabulary {
  const tokens = metadata.texts("tokenizer.ggml.tokens");
  const types =
    metadata.numbersIf("tokenizer.ggml.token_type") ?? new Uint8Array(tokens.length).fill(1);
  if (types.length !== tokens.length)
    throw metadata.error(`${tokens.length} tokens have ${types.length} types; expected one each`);
  const twice = tokens.length - new Set(tokens).size;
  if (twice > 0) throw metadata.error(`${twice} tokens are in the vocabulary twice`);
  return { metadata, tokens, types };
}

/** Typed access to the metadata of a GGUF file: a value that is missing or of another type is an error. */
import { EngineError } from "@pawl/core/engine/engine.js";
import type { GgufFile } from "./gguf-file.js";

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

/** Reads the metadata, and remembers which values were read. */
export interface Metadata {
  readonly file: string;
  number(key: string): number;
  numberIf(key: string): number | undefined;
  /** One number, or the same number for every layer. */
  uniform(key: string): number | undefined;
  text(key: string): string;
  textIf(key: string): string | undefined;
  booleanIf(key: string): boolean | undefined;
  texts(key: string): readonly string[];
  textsIf(key: string): readonly string[] | undefined;
  numbers(key: string): ArrayLike<number>;
  numbersIf(key: string): ArrayLike<number> | undefined;
  /** Keys with this prefix that have not been read. */
  unread(prefix: string): readonly string[];
  /** An error that names the file. */
  error(problem: string): EngineError;
}

/** The metadata of a file. */
export function metadataOf({ file, metadata }: Pick<GgufFile, "file" | "metadata">): Metadata {
  const read = new Set<string>();
  const error = (problem: string) => new EngineError(`${file}: ${problem}`);
  function find<T>(key: string, kind: string, is: (value: unknown) => value is T): T | undefined {
    read.add(key);
    const value = metadata.get(key);
    if (value === undefined || is(value)) return value;
    throw error(`metadata ${key} is not ${kind}`);
  }
  function need<T>(key: string, value: T | undefined): T {
    if (value === undefined) throw error(`metadata ${key} is missing`);
    return value;
  }
  const numberIf = (key: string) => find(key, "a number", (v) => typeof v === "number");
  const textIf = (key: string) => find(key, "a text", (v) => typeof v === "string");
  const textsIf = (key: string) => find(key, "a list of texts", isTexts);
  const numbersIf = (key: string) => find(key, "a list of numbers", isNumbers);
  return {
    file,
    number: (key) => need(key, numberIf(key)),
    numberIf,
    uniform(key) {
      if (typeof metadata.get(key) !== "object") return numberIf(key);
      const all = new Set(Array.from(need(key, numbersIf(key))));
      if (all.size !== 1)
        throw error(`metadata ${key} differs between layers, which is not supported`);
      return [...all][0];
    },
    text: (key) => need(key, textIf(key)),
    textIf,
    booleanIf: (key) => find(key, "true or false", (v) => typeof v === "boolean"),
    texts: (key) => need(key, textsIf(key)),
    textsIf,
    numbers: (key) => need(key, numbersIf(key)),
    numbersIf,
    unread: (prefix) =>
      [...metadata.keys()].filter((key) => key.startsWith(prefix) && !read.has(key)),
    error,
  };
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value);
}

function isNumbers(value: unknown): value is ArrayLike<number> {
  return ArrayBuffer.isView(value);
}

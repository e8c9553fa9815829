/**
 * From the metadata of a GGUF file to the tokenizer files of Hugging Face's layout.
 *
 * llama.cpp stores the vocabulary, the merges and the name of the rule that splits text into words
 * (`tokenizer.ggml.pre`). The rules themselves are in its source code; those known here are written
 * out as a pre-tokenizer, others are refused by name: a nearly right rule gives wrong tokens.
 */

import { isDeepStrictEqual } from "node:util";
import { wordRule } from "@pawl/core/text/foreign-patterns.js";
import type { TokenizerFiles } from "@pawl/core/text/tokenizer.js";
import { isRecord } from "@pawl/core/text/tool.js";
import type { GgufFile } from "./gguf-file.js";
import {
  type GgufVocabulary,
  type Metadata,
  metadataOf,
  readVocabulary,
  TOKEN_TYPE,
  type TokenizerParts,
} from "./gguf-metadata.js";

/** What a tokenizer does with a text before bytes are joined to tokens. */
interface WordRule {
  readonly normalizer: unknown;
  readonly pre_tokenizer: unknown;
  /** A word that is in the vocabulary is one token, even if the merges do not lead to it. */
  readonly ignoreMerges: boolean;
}

const byteLevel = (useRegex: boolean) => ({
  type: "ByteLevel",
  add_prefix_space: false,
  trim_offsets: true,
  use_regex: useRegex,
});

/** Splits by Llama 3's expression, with the given form of numbers. */
const splitBy = (numbers: string) => ({
  type: "Sequence",
  pretokenizers: [
    {
      type: "Split",
      pattern: { Regex: wordRule(numbers) },
      behavior: "Isolated",
      invert: false,
    },
    byteLevel(false),
  ],
});

const gpt2: WordRule = { normalizer: null, pre_tokenizer: byteLevel(true), ignoreMerges: false };
const llama3: WordRule = {
  normalizer: null,
  pre_tokenizer: splitBy("\\p{N}{1,3}"),
  ignoreMerges: true,
};
const qwen2: WordRule = {
  normalizer: { type: "NFC" },
  pre_tokenizer: splitBy("\\p{N}"),
  ignoreMerges: false,
};
const smollm: WordRule = {
  normalizer: null,
  pre_tokenizer: {
    type: "Sequence",
    pretokenizers: [{ type: "Digits", individual_digits: true }, byteLevel(true)],
  },
  ignoreMerges: false,
};

const RULES: Readonly<Record<string, WordRule>> = {
  "gpt-2": gpt2,
  default: gpt2,
  "llama-bpe": llama3,
  llama3,
  "llama-v3": llama3,
  qwen2,
  smollm,
};

/** The rule of this name; an unknown one is refused. */
function preTokenizerOf(name: string, metadata: Metadata): WordRule {
  const rule = Object.hasOwn(RULES, name) ? RULES[name] : undefined;
  if (rule === undefined)
    throw metadata.error(
      `the tokenizer's rule for words, ${JSON.stringify(name.slice(0, 60))} (tokenizer.ggml.pre), is not known; known: ${Object.keys(RULES).join(", ")}. Use the model in Hugging Face layout instead`,
    );
  return rule;
}

/** llama.cpp's name of a tokenizer's rule; undefined if none of the known ones gives the same ids. */
export function wordRuleName(rule: WordRule): string | undefined {
  const steps = (one: WordRule) => [
    stepsOf(one.normalizer),
    stepsOf(one.pre_tokenizer),
    one.ignoreMerges,
  ];
  return Object.entries(RULES).find(([, known]) =>
    isDeepStrictEqual(steps(known), steps(rule)),
  )?.[0];
}

/** What tokenizer.json may leave out, as the native library fills it in. */
const DEFAULTS: Readonly<Record<string, object>> = {
  ByteLevel: { add_prefix_space: true, use_regex: true },
  Digits: { individual_digits: false },
  Split: { invert: false },
};

/** A normalizer or pre-tokenizer as a list of steps, without what does not change ids. */
function stepsOf(part: unknown): readonly unknown[] {
  if (!isRecord(part)) return [];
  const inside = part.pretokenizers ?? part.normalizers;
  if (part.type === "Sequence" && Array.isArray(inside)) return inside.flatMap(stepsOf);
  const { trim_offsets: _, ...step } = part;
  return [{ ...DEFAULTS[String(part.type)], ...step }];
}

// SentencePiece's byte-pair encoding (Llama 2, Mistral 7B, Gemma) as a tokenizer.json.
//
// SentencePiece joins the neighbouring pieces whose union has the best score; tokenizer.json lists
// the joins in that order instead. Characters that are not in the vocabulary become bytes.

const BLANK = "▁";
/** Text never becomes a token of these types by joining pieces. */
const NOT_JOINED: readonly number[] = Object.values(TOKEN_TYPE);

/** The parts of tokenizer.json that depend on the kind of tokenizer. */
function sentencePieceParts(vocabulary: GgufVocabulary): TokenizerParts {
  const { metadata, tokens, types } = vocabulary;
  const scores = metadata.numbers(`${KEY}.scores`);
  if (scores.length !== tokens.length)
    throw metadata.error(`${tokens.length} tokens have ${scores.length} scores; expected one each`);
  const unknown =
    metadata.numberIf(`${KEY}.unknown_token_id`) ??
    tokens.findIndex((_, id) => types[id] === TOKEN_TYPE.unknown);
  const leading = metadata.booleanIf(`${KEY}.add_space_prefix`) ?? true;
  const replace = { type: "Replace", pattern: { String: " " }, content: BLANK };
  const restore = { type: "Replace", pattern: { String: BLANK }, content: " " };
  return {
    normalizer: leading
      ? { type: "Sequence", normalizers: [{ type: "Prepend", prepend: BLANK }, replace] }
      : replace,
    pre_tokenizer: null,
    decoder: {
      type: "Sequence",
      decoders: [
        restore,
        { type: "ByteFallback" },
        { type: "Fuse" },
        ...(leading ? [{ type: "Strip", content: " ", start: 1, stop: 0 }] : []),
      ],
    },
    model: {
      type: "BPE",
      dropout: null,
      unk_token: tokens[unknown] ?? null,
      continuing_subword_prefix: null,
      end_of_word_suffix: null,
      fuse_unk: true,
      byte_fallback: true,
      ignore_merges: false,
      vocab: Object.fromEntries(tokens.map((token, id) => [token, id])),
      merges: mergesOf(vocabulary, scores),
    },
  };
}

/** Every way to make a token of two others, the best token first; of one token, by its parts' ids. */
function mergesOf({ tokens, types }: GgufVocabulary, scores: ArrayLike<number>) {
  const ids = new Map<string, number>();
  tokens.forEach((token, id) => {
    if (!NOT_JOINED.includes(types[id]!)) ids.set(token, id);
  });
  const merges: { readonly pair: readonly [string, string]; readonly score: number }[] = [];
  for (const [token, id] of ids) {
    const splits: [left: number, right: number][] = [];
    const letters = Array.from(token);
    for (let at = 1; at < letters.length; at++) {
      const left = ids.get(letters.slice(0, at).join(""));
      const right = ids.get(letters.slice(at).join(""));
      if (left !== undefined && right !== undefined) splits.push([left, right]);
    }
    splits.sort(([a, b], [c, d]) => a - c || b - d);
    for (const [left, right] of splits)
      merges.push({ pair: [tokens[left]!, tokens[right]!], score: scores[id]! });
  }
  return merges.sort((a, b) => b.score - a.score).map(({ pair }) => pair);
}

const KEY = "tokenizer.ggml";

/** The tokenizer files of a model; a file without a tokenizer is refused. */
export function ggufTokenizer(gguf: GgufFile): TokenizerFiles {
  const metadata = metadataOf(gguf);
  const model = metadata.textIf(`${KEY}.model`);
  if (model === undefined)
    throw metadata.error(`it holds no tokenizer (${KEY}.model); expected a complete model`);
  const vocabulary = readVocabulary(metadata);
  const parts = partsOf(model, vocabulary);
  const named = specialTokens(vocabulary);
  const addedTokens = added(vocabulary, Object.values(named));
  const begin =
    (metadata.booleanIf(`${KEY}.add_bos_token`) ?? model === "llama") && named.bos_token;
  const json = {
    version: "1.0",
    truncation: null,
    padding: null,
    added_tokens: addedTokens,
    normalizer: parts.normalizer,
    pre_tokenizer: parts.pre_tokenizer,
    post_processor: begin ? beginWith(begin, vocabulary.tokens.indexOf(begin)) : null,
    decoder: parts.decoder,
    model: parts.model,
  };
  const config = {
    tokenizer_class: "PreTrainedTokenizerFast",
    ...named,
    add_bos_token: begin ? true : undefined,
    clean_up_tokenization_spaces: false,
    model_max_length: metadata.numberIf(`${metadata.text("general.architecture")}.context_length`),
    chat_template: metadata.textIf("tokenizer.chat_template"),
  };
  const ends = endIds(metadata, vocabulary);
  return {
    tokenizer: JSON.stringify(json),
    config: `${JSON.stringify(config, null, 2)}\n`,
    generation:
      ends.length === 0
        ? undefined
        : `${JSON.stringify({ eos_token_id: ends.length === 1 ? ends[0] : ends }, null, 2)}\n`,
  };
}

function partsOf(model: string, vocabulary: GgufVocabulary): TokenizerParts {
  if (model === "gpt2") return bytePairParts(vocabulary);
  if (model === "llama") return sentencePieceParts(vocabulary);
  throw vocabulary.metadata.error(
    `tokenizer ${JSON.stringify(model.slice(0, 60))} is not supported; supported: gpt2 (byte-level BPE), llama (SentencePiece)`,
  );
}

/** Byte-level byte-pair encoding, as in GPT-2 and most models since. */
function bytePairParts({ metadata, tokens }: GgufVocabulary): TokenizerParts {
  const { normalizer, pre_tokenizer, ignoreMerges } = preTokenizerOf(
    metadata.textIf(`${KEY}.pre`) ?? "default",
    metadata,
  );
  const merges = metadata.texts(`${KEY}.merges`).map((merge) => {
    // A piece may begin with a blank's letter Ġ, never with a blank itself.
    const at = merge.indexOf(" ", 1);
    if (at < 1 || at === merge.length - 1)
      throw metadata.error(`${KEY}.merges: ${JSON.stringify(merge.slice(0, 60))} is not a pair`);
    return [merge.slice(0, at), merge.slice(at + 1)];
  });
  return {
    normalizer,
    pre_tokenizer,
    decoder: { type: "ByteLevel", add_prefix_space: true, trim_offsets: true, use_regex: true },
    model: {
      type: "BPE",
      dropout: null,
      unk_token: null,
      continuing_subword_prefix: null,
      end_of_word_suffix: null,
      fuse_unk: false,
      byte_fallback: false,
      ignore_merges: ignoreMerges,
      vocab: Object.fromEntries(tokens.map((token, id) => [token, id])),
      merges,
    },
  };
}

/** Tokens that stand for themselves: special ones (control), and those that text may spell out. */
function added({ tokens, types }: GgufVocabulary, named: readonly string[]) {
  return tokens.flatMap((content, id) => {
    const special = types[id] === TOKEN_TYPE.control || named.includes(content);
    if (!special && types[id] !== TOKEN_TYPE.userDefined) return [];
    const plain = { single_word: false, lstrip: false, rstrip: false, normalized: false };
    return [{ id, content, ...plain, special }];
  });
}

const NAMED = {
  bos_token: "bos_token_id",
  eos_token: "eos_token_id",
  unk_token: "unknown_token_id",
  pad_token: "padding_token_id",
} as const;

function specialTokens(vocabulary: GgufVocabulary): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(NAMED).flatMap(([name, key]) => {
      const token = tokenAt(vocabulary, key);
      return token === undefined ? [] : [[name, token.content]];
    }),
  );
}

function tokenAt({ metadata, tokens }: GgufVocabulary, key: string) {
  const id = metadata.numberIf(`${KEY}.${key}`);
  if (id === undefined) return undefined;
  const content = tokens[id];
  if (content === undefined)
    throw metadata.error(`${KEY}.${key} is ${id}, but there are ${tokens.length} tokens`);
  return { id, content };
}

/** Tokens that end a turn: the end of text, and those of a turn and a message where they differ. */
function endIds(metadata: Metadata, vocabulary: GgufVocabulary): readonly number[] {
  const keys = ["eos_token_id", "eot_token_id", "eom_token_id"];
  const found = keys.flatMap((key) => tokenAt(vocabulary, key)?.id ?? []);
  const more = Array.from(metadata.numbersIf(`${KEY}.eos_token_ids`) ?? []);
  return [...new Set([...found, ...more])];
}

function beginWith(token: string, id: number): unknown {
  const special = { SpecialToken: { id: token, type_id: 0 } };
  const a = { Sequence: { id: "A", type_id: 0 } };
  const b = { Sequence: { id: "B", type_id: 1 } };
  return {
    type: "TemplateProcessing",
    single: [special, a],
    pair: [special, a, { SpecialToken: { id: token, type_id: 1 } }, b],
    special_tokens: { [token]: { id: token, ids: [id], tokens: [token] } },
  };
}

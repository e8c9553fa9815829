/** How byte-level tokenizers split text into words, by llama.cpp's name for the rule. */
import { wordRule } from "@pawl/core/text/foreign-patterns.js";
import type { Metadata } from "./gguf-metadata.js";

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
export function preTokenizerOf(name: string, metadata: Metadata): WordRule {
  const rule = Object.hasOwn(RULES, name) ? RULES[name] : undefined;
  if (rule === undefined)
    throw metadata.error(
      `the tokenizer's rule for words, ${JSON.stringify(name.slice(0, 60))} (tokenizer.ggml.pre), is not known; known: ${Object.keys(RULES).join(", ")}. Use the model in Hugging Face layout instead`,
    );
  return rule;
}

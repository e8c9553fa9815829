/** How byte-level tokenizers split text into words, by llama.cpp's name for the rule. */
import { isDeepStrictEqual } from "node:util";
import { wordRule } from "@pawl/core/text/foreign-patterns.js";
import { isRecord } from "@pawl/core/text/tool.js";
import type { Metadata } from "./gguf-metadata.js";

/** What a tokenizer does with a text before bytes are joined to tokens. */
export interface WordRule {
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

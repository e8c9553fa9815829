/**
 * Words: how text falls into pre-tokens for the tokenizers that are built here. Pre-tokens are encoded each by itself,
 * so that a text's ids are those of its words one after another, and words can be remembered.
 */

/** A word, a number of up to three digits, a run of signs, white space. A leading blank belongs to what follows. */
const PATTERN = " ?\\p{L}+(?:['’-]\\p{L}+)*| ?\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

const words = new RegExp(PATTERN, "gu");

/** The bytes of a word as characters; also how they are read back. */
export const byteLevel = {
  type: "ByteLevel",
  add_prefix_space: false,
  trim_offsets: false,
  use_regex: false,
};

/** The same, as `tokenizer.json` says it. */
export const wordPreTokenizer = {
  type: "Sequence",
  pretokenizers: [
    { type: "Split", pattern: { Regex: PATTERN }, behavior: "Isolated", invert: false },
    byteLevel,
  ],
};

/** The pre-tokens of a text: put together they are the text. */
export function wordsOf(text: string): readonly string[] {
  return text.match(words) ?? [];
}

/**
 * Words: how text is split into pre-tokens for the tokenizers built here. Each pre-token is encoded
 * separately, so a text's ids are the concatenated ids of its words, and words can be cached.
 */

/**
 * A word, a number of up to three digits, a run of symbols, or white space. A leading blank belongs
 * to what follows.
 */
export const wordPattern =
  " ?\\p{L}+(?:['’-]\\p{L}+)*| ?\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

// As the native library reads the pattern: JavaScript's white space is not quite Unicode's.
const words = new RegExp(
  wordPattern.replace(/\\([sS])/g, (_, one) => `\\${one === "s" ? "p" : "P"}{White_Space}`),
  "gu",
);

/** The bytes of a word as characters; also how they are read back. */
export const byteLevel = {
  type: "ByteLevel",
  add_prefix_space: false,
  trim_offsets: false,
  use_regex: false,
};

/** The same in the form of `tokenizer.json`. */
export const wordPreTokenizer = {
  type: "Sequence",
  pretokenizers: [
    { type: "Split", pattern: { Regex: wordPattern }, behavior: "Isolated", invert: false },
    byteLevel,
  ],
};

/** The pre-tokens of a text; their concatenation is the text. */
export function wordsOf(text: string): readonly string[] {
  return text.match(words) ?? [];
}

/**
 * A tokenizer made from an environment's own text, for small models.
 *
 * Byte-level BPE in the standard `tokenizer.json` form. What differs from the textbook: every pre-token of
 * the texts goes into the vocabulary as it is (`ignore_merges`), so that a word of a closed world is one
 * token without the tail of halves, thirds and quarters that merging up to whole words would leave in the
 * vocabulary, never used. Merges are learnt only for words the texts do not have. A name and its number are
 * two tokens (` mug`, ` 1`): so the mug of a goal and the mug that is seen are the same token, and a small
 * model need not learn thing by thing that they belong together. Any text survives encoding and decoding.
 */
import { z } from "zod";
import { learnMerges } from "./byte-pairs.js";
import { markers } from "./prompt-compact.js";
import { createTokenizer, type Tokenizer, TokenizerError } from "./tokenizer.js";
import { byteLevel, wordPreTokenizer, wordsOf } from "./words.js";

/** Settings of the tokenizer builder. */
export const tokenizerBuilderOptions = z.strictObject({
  maxVocabulary: z
    .int()
    .min(1)
    .default(4096)
    .describe("most tokens; the rarest words of the texts are left to be spelled from pieces"),
  subwords: z
    .int()
    .min(0)
    .default(64)
    .describe("pieces of words (merges) to learn, for words the texts do not have"),
});

/** Settings of the tokenizer builder, as a caller gives them. */
export type TokenizerBuilderOptions = z.input<typeof tokenizerBuilderOptions>;

/** Fills up batches; stands for nothing, so that no token of a text is ever taken for filling. */
const pad = "<|pad|>";

/**
 * The special tokens, few on purpose: filling, the compact style's markers (each one token), and among
 * them the end of a text. There is none for the beginning (the goal's marker begins every prompt) and
 * none for unknown words (bytes spell everything).
 */
const specials: readonly string[] = [pad, ...Object.values(markers)];

/** Builds a tokenizer from texts; the same texts and options always give the same file. */
export function buildTokenizer(
  texts: Iterable<string>,
  options: TokenizerBuilderOptions = {},
): Tokenizer {
  const { maxVocabulary, subwords } = tokenizerBuilderOptions.parse(options);
  const base = [...specials, ...byteCharacters];
  if (maxVocabulary < base.length) {
    throw new TokenizerError(
      `maxVocabulary is ${maxVocabulary}, but the special tokens and the 256 bytes alone are ${base.length}.`,
    );
  }
  const words = byFrequency(countWords(texts));
  const merges = learnMerges(words, Math.min(subwords, maxVocabulary - base.length));

  const vocabulary = new Map(base.map((token, id) => [token, id]));
  const add = (token: string) => {
    if (!vocabulary.has(token)) vocabulary.set(token, vocabulary.size);
  };
  for (const [left, right] of merges) add(left + right);
  for (const [word] of words) {
    if (vocabulary.size >= maxVocabulary) break;
    add(word);
  }
  return createTokenizer({
    tokenizer: JSON.stringify(tokenizerJson(vocabulary, merges)),
    config: JSON.stringify(
      {
        tokenizer_class: "PreTrainedTokenizerFast",
        eos_token: markers.end,
        pad_token: pad,
        clean_up_tokenization_spaces: false,
      },
      undefined,
      2,
    ),
  });
}

function tokenizerJson(
  vocabulary: ReadonlyMap<string, number>,
  merges: readonly (readonly [string, string])[],
): object {
  return {
    version: "1.0",
    truncation: null,
    padding: null,
    added_tokens: specials.map((content, id) => ({
      id,
      content,
      single_word: false,
      lstrip: false,
      rstrip: false,
      normalized: false,
      special: true,
    })),
    normalizer: null,
    pre_tokenizer: wordPreTokenizer,
    post_processor: null,
    decoder: byteLevel,
    model: {
      type: "BPE",
      dropout: null,
      unk_token: null,
      continuing_subword_prefix: null,
      end_of_word_suffix: null,
      fuse_unk: false,
      byte_fallback: false,
      ignore_merges: true,
      vocab: Object.fromEntries(vocabulary),
      merges,
    },
  };
}

/**
 * The printable character that stands for each byte in a byte-level vocabulary: itself where it is
 * printable, else the next one from U+0100 on. Every byte-level tokenizer uses this table.
 */
const byteCharacters: readonly string[] = (() => {
  let next = 0x100;
  return Array.from({ length: 256 }, (_, byte) => {
    const printable =
      (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
    return String.fromCodePoint(printable ? byte : next++);
  });
})();

/** How often each pre-token occurs, spelled in byte characters. */
function countWords(texts: Iterable<string>): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const text of texts) {
    for (const word of wordsOf(text)) counts.set(word, (counts.get(word) ?? 0) + 1);
  }
  return new Map(
    [...counts].map(([word, count]) => [
      Array.from(Buffer.from(word), (byte) => byteCharacters[byte]).join(""),
      count,
    ]),
  );
}

/** The most frequent first; ties in the order of their characters, so that the order is fixed. */
function byFrequency(counts: ReadonlyMap<string, number>): readonly (readonly [string, number])[] {
  return [...counts].sort(([a, countA], [b, countB]) => countB - countA || (a < b ? -1 : 1));
}

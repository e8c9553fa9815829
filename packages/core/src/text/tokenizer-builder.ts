/**
 * Builds a tokenizer from an environment's own text, for small models.
 *
 * Byte-level BPE in the standard `tokenizer.json` form. It differs from the textbook in that every
 * pre-token of the texts is added to the vocabulary as a whole (`ignore_merges`). So each word of a
 * closed world is one token, and the vocabulary is not filled with the unused fragments that
 * merging up to whole words would leave. Merges are learnt only for words that are not in the
 * texts. A name and its number are two tokens (` mug`, ` 1`): the mug of a goal and the mug that is
 * seen are the same token, and a small model need not learn for each object that they belong
 * together. Any text survives encoding and decoding.
 */
import { z } from "zod";
import { markers } from "./prompt-compact.js";
import { createTokenizer, type Tokenizer, TokenizerError } from "./tokenizer.js";
import { byteCharacters } from "./whole-text.js";
import { byteLevel, wordPreTokenizer, wordsOf } from "./words.js";

/** Byte-pair merges: which neighbouring pieces of words to join, most frequent pair first. */

/** Two neighbouring pieces that become one. */
type Merge = readonly [left: string, right: string];

interface Word {
  pieces: string[];
  readonly count: number;
}

/** Longer words are addresses, hashes and the like: their pieces say nothing about other words. */
const longestWord = 64;

/** Up to `limit` merges for words with their frequencies. */
export function learnMerges(
  counts: Iterable<readonly [word: string, count: number]>,
  limit: number,
): readonly Merge[] {
  const words: Word[] = [];
  for (const [word, count] of counts) {
    if (word.length <= longestWord) words.push({ pieces: Array.from(word), count });
  }
  const pairs = pairTable();
  for (const word of words) pairs.change(word, 1);

  const ranks = new Map<string, number>();
  const merges: Merge[] = [];
  while (merges.length < limit) {
    const best = pairs.mostFrequent();
    if (best === undefined) break;
    ranks.set(best.key, merges.length);
    merges.push(best.merge);
    for (const word of best.words) {
      pairs.change(word, -1);
      word.pieces = applyMerges(word.pieces, ranks);
      pairs.change(word, 1);
    }
  }
  return merges;
}

/**
 * Applies merges as an encoder does: lowest rank first, leftmost of equals. Joining one pair can
 * create another that was learnt much earlier, so applying only the new merge is not enough.
 */
function applyMerges(start: readonly string[], ranks: ReadonlyMap<string, number>): string[] {
  const pieces = [...start];
  for (;;) {
    let at = -1;
    let lowest = Infinity;
    for (let i = 0; i + 1 < pieces.length; i++) {
      const rank = ranks.get(pairKey(pieces[i] as string, pieces[i + 1] as string));
      if (rank !== undefined && rank < lowest) {
        lowest = rank;
        at = i;
      }
    }
    if (at < 0) return pieces;
    pieces.splice(at, 2, `${pieces[at]}${pieces[at + 1]}`);
  }
}

interface Pair {
  readonly key: string;
  readonly merge: Merge;
  count: number;
  /** Every word that has the pair, and perhaps some that had it before. */
  readonly words: Set<Word>;
}

/** The pairs of neighbours in all words, updated as words change. */
function pairTable() {
  const pairs = new Map<string, Pair>();
  return {
    /** Adds (`sign` 1) or removes (`sign` -1) the pairs of a word. */
    change(word: Word, sign: 1 | -1): void {
      const { pieces } = word;
      for (let i = 0; i + 1 < pieces.length; i++) {
        const merge: Merge = [pieces[i] as string, pieces[i + 1] as string];
        const key = pairKey(...merge);
        const pair = pairs.get(key) ?? { key, merge, count: 0, words: new Set<Word>() };
        pair.count += sign * word.count;
        if (sign === 1) pair.words.add(word);
        if (pair.count === 0) pairs.delete(key);
        else pairs.set(key, pair);
      }
    },
    /** Ties go to the pair that comes first in the order of its characters. */
    mostFrequent(): Pair | undefined {
      let best: Pair | undefined;
      for (const pair of pairs.values()) {
        if (
          best === undefined ||
          pair.count > best.count ||
          (pair.count === best.count && pair.key < best.key)
        ) {
          best = pair;
        }
      }
      return best;
    },
  };
}

/** No piece contains a blank: byte-level spelling uses another character for that byte. */
function pairKey(left: string, right: string): string {
  return `${left} ${right}`;
}

/** Settings of the tokenizer builder. */
const tokenizerBuilderOptions = z.strictObject({
  maxVocabulary: z
    .int()
    .min(1)
    .default(4096)
    .describe("vocabulary size limit; the rarest words are spelled from pieces"),
  subwords: z
    .int()
    .min(0)
    .default(64)
    .describe("BPE merges to learn, for words that are not in the texts"),
  chat: z.boolean().default(false).describe("with roles and a chat template, for the chat style"),
});

/** Settings of the tokenizer builder, as a caller gives them. */
export type TokenizerBuilderOptions = z.input<typeof tokenizerBuilderOptions>;

/** Pads batches; it has no meaning, so that no token of a text is ever mistaken for padding. */
const pad = "<|pad|>";

/**
 * The special tokens, few on purpose: padding and the compact style's markers (one token each), one
 * of which ends a text. There is none for the beginning (the goal's marker begins every prompt) and
 * none for unknown words (bytes can spell everything).
 */
const specials: readonly string[] = [pad, ...Object.values(markers)];

/** One token begins a message of each role; the end of a text ends it. */
const roles = ["system", "user", "assistant", "tool"].map((role) => `<|${role}|>`);

/** The chat template of models from scratch: append-only, with no more tokens than it needs. */
const chatTemplate =
  "{% for message in messages %}{{ '<|' + message['role'] + '|>' + message['content'] + eos_token }}{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}";

/** Builds a tokenizer from texts; the same texts and options always give the same file. */
export function buildTokenizer(
  texts: Iterable<string>,
  options: TokenizerBuilderOptions = {},
): Tokenizer {
  const { maxVocabulary, subwords, chat } = tokenizerBuilderOptions.parse(options);
  const special = chat ? [...specials, ...roles] : specials;
  const base = [...special, ...byteCharacters];
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
    tokenizer: JSON.stringify(tokenizerJson(special, vocabulary, merges)),
    config: JSON.stringify(
      {
        tokenizer_class: "PreTrainedTokenizerFast",
        eos_token: markers.end,
        pad_token: pad,
        clean_up_tokenization_spaces: false,
        ...(chat && { chat_template: chatTemplate }),
      },
      undefined,
      2,
    ),
  });
}

function tokenizerJson(
  special: readonly string[],
  vocabulary: ReadonlyMap<string, number>,
  merges: readonly (readonly [string, string])[],
): object {
  return {
    version: "1.0",
    truncation: null,
    padding: null,
    added_tokens: special.map((content, id) => ({
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

/** The frequency of each pre-token, spelled in byte characters. */
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

/** Most frequent first; ties are sorted by their characters, so that the order is fixed. */
function byFrequency(counts: ReadonlyMap<string, number>): readonly (readonly [string, number])[] {
  return [...counts].sort(([a, countA], [b, countB]) => countB - countA || (a < b ? -1 : 1));
}

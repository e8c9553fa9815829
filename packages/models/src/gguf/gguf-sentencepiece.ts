/**
 * SentencePiece's byte-pair encoding (Llama 2, Mistral 7B, Gemma) as a tokenizer.json.
 *
 * SentencePiece joins the neighbouring pieces whose union has the best score; tokenizer.json lists
 * the joins in that order instead. Characters that are not in the vocabulary become bytes.
 */
import { type GgufVocabulary, TOKEN_TYPE, type TokenizerParts } from "./gguf-vocabulary.js";

const BLANK = "▁";
const KEY = "tokenizer.ggml";
/** Text never becomes a token of these types by joining pieces. */
const NOT_JOINED: readonly number[] = Object.values(TOKEN_TYPE);

/** The parts of tokenizer.json that depend on the kind of tokenizer. */
export function sentencePieceParts(vocabulary: GgufVocabulary): TokenizerParts {
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

/**
 * From a tokenizer in Hugging Face's layout to the metadata of a GGUF file.
 *
 * llama.cpp knows rules for words by name only, so a tokenizer whose rule has no name there is
 * refused: with a nearly right one, the model would read other tokens than it was trained on.
 */
import { isDeepStrictEqual } from "node:util";
import { EngineError } from "@pawl/core/engine/engine.js";
import type { Tokenizer } from "@pawl/core/text/tokenizer.js";
import { wordPreTokenizer } from "@pawl/core/text/words.js";
import { z } from "zod";
import { TOKEN_TYPE } from "./gguf-metadata.js";
import { wordRuleName } from "./gguf-tokenizer.js";
import type { WrittenMetadata } from "./gguf-write.js";

/** Types of tokens, beside those with a meaning of their own. */
const NORMAL = 1;
const UNUSED = 5;
/** Where llama.cpp keeps the tokens that end a turn. */
const END_KEYS = ["eos_token_id", "eot_token_id", "eom_token_id"];

const flag = z.boolean().default(false);
/** What of tokenizer.json decides a text's ids. */
const fileSchema = z.looseObject({
  normalizer: z.unknown().optional(),
  pre_tokenizer: z.unknown().optional(),
  post_processor: z.unknown().optional(),
  added_tokens: z
    .array(
      z.looseObject({
        id: z.int(),
        content: z.string(),
        special: flag,
        single_word: flag,
        lstrip: flag,
        rstrip: flag,
      }),
    )
    .nullish(),
  model: z.looseObject({
    type: z.string().default("BPE"),
    dropout: z.number().nullish(),
    continuing_subword_prefix: z.string().nullish(),
    end_of_word_suffix: z.string().nullish(),
    byte_fallback: flag,
    ignore_merges: flag,
    vocab: z.unknown(),
    merges: z.unknown(),
  }),
});
type File = z.infer<typeof fileSchema>;
const vocabSchema = z.record(z.string(), z.int());
const mergesSchema = z.array(z.union([z.string(), z.tuple([z.string(), z.string()])]));

/**
 * The metadata of a tokenizer for a model with `rows` embeddings; those without a token get one that
 * is never used. Errors name `origin`.
 */
export function tokenizerMetadata(
  tokenizer: Tokenizer,
  rows: number,
  origin: string,
): WrittenMetadata {
  const refuse = (problem: string) =>
    new EngineError(`${origin}: the tokenizer cannot be written as GGUF: ${problem}`);
  const parsed = fileSchema.safeParse(JSON.parse(tokenizer.files.tokenizer));
  if (!parsed.success) throw refuse(z.prettifyError(parsed.error));
  const file = parsed.data;
  const pre = ruleOf(file, refuse);
  const vocab = vocabSchema.parse(file.model.vocab);
  const merges = mergesSchema.parse(file.model.merges);
  const added = file.added_tokens ?? [];
  const tokens = Array.from({ length: rows }, (_, id) => `[PAD${id}]`);
  const types = tokens.map(() => UNUSED);
  const put = (content: string, id: number, type: number) => {
    if (id >= rows) throw refuse(`token ${id}, but the model has ${rows} embeddings`);
    tokens[id] = content;
    types[id] = type;
  };
  for (const [content, id] of Object.entries(vocab)) put(content, id, NORMAL);
  for (const { id, content, special } of added)
    put(content, id, special ? TOKEN_TYPE.control : TOKEN_TYPE.userDefined);
  const ids = new Map(tokens.map((token, id) => [token, id]));
  const twice = tokens.find((token, id) => ids.get(token) !== id);
  if (twice !== undefined) throw refuse(`token ${JSON.stringify(twice)} is there twice`);
  const ends = tokenizer.endIds;
  if (ends.length === 0 || ends.length > END_KEYS.length)
    throw refuse(
      `${ends.length} tokens end a turn (eos_token, and eos_token_id of generation_config.json); expected 1 to ${END_KEYS.length}`,
    );
  const { beginId, padId, chatTemplate } = tokenizer;
  const of = (key: string) => `tokenizer.ggml.${key}`;
  return {
    [of("model")]: { string: "gpt2" },
    [of("pre")]: { string: pre },
    [of("tokens")]: { strings: tokens },
    [of("token_type")]: { i32s: types },
    [of("merges")]: {
      strings: merges.map((merge) => (typeof merge === "string" ? merge : merge.join(" "))),
    },
    ...(beginId !== undefined && { [of("bos_token_id")]: { u32: beginId } }),
    ...Object.fromEntries(ends.map((id, i) => [of(END_KEYS[i]!), { u32: id }])),
    ...(padId !== undefined && { [of("padding_token_id")]: { u32: padId } }),
    // Said either way: some rules have one of their own.
    [of("add_bos_token")]: { bool: addsBegin(file, beginId, refuse) },
    ...(chatTemplate !== undefined && { "tokenizer.chat_template": { string: chatTemplate } }),
  };
}

type Refuse = (problem: string) => EngineError;

/** llama.cpp's name for what the tokenizer does; one that has none is refused. */
function ruleOf({ normalizer, pre_tokenizer, model, added_tokens }: File, refuse: Refuse): string {
  if (isDeepStrictEqual(pre_tokenizer, wordPreTokenizer))
    throw refuse(
      "it was made from an environment's text, as those of models from scratch are, and llama.cpp has no rule that splits words so; such a model runs in Pawl, transformers and vLLM (pawl export without --to)",
    );
  if (model.type !== "BPE" || model.byte_fallback)
    throw refuse(
      `it is ${model.type === "BPE" ? "SentencePiece's" : model.type}; only byte-level BPE is written`,
    );
  if (model.dropout || model.continuing_subword_prefix || model.end_of_word_suffix)
    throw refuse("its BPE has dropout, a prefix or a suffix, which llama.cpp does not");
  const padded = added_tokens?.find((one) => one.single_word || one.lstrip || one.rstrip);
  if (padded !== undefined)
    throw refuse(
      `token ${JSON.stringify(padded.content)} takes the blanks beside it, or stands only between them (lstrip, rstrip, single_word)`,
    );
  const name = wordRuleName({ normalizer, pre_tokenizer, ignoreMerges: model.ignore_merges });
  if (name === undefined)
    throw refuse(
      "its rule for words (normalizer, pre_tokenizer, ignore_merges) is none of SmolLM's, Qwen2's, Llama 3's and GPT-2's",
    );
  return name;
}

const template = z.object({
  type: z.literal("TemplateProcessing"),
  single: z.array(
    z.union([
      z.object({ SpecialToken: z.object({ id: z.string() }) }),
      z.object({ Sequence: z.unknown() }),
    ]),
  ),
});
const postProcessors = z.object({
  type: z.literal("Sequence"),
  processors: z.array(z.unknown()),
});

/** Whether programs that add special tokens begin a text with one. */
function addsBegin(file: File, beginId: number | undefined, refuse: Refuse): boolean {
  const { post_processor: processor } = file;
  const all = postProcessors.safeParse(processor).data?.processors ?? [processor ?? undefined];
  const kind = z.object({ type: z.string() });
  const other = all.filter(
    (one) => one !== undefined && kind.safeParse(one).data?.type !== "ByteLevel",
  );
  if (other.length === 0) return false;
  const single = other.length === 1 ? template.safeParse(other[0]).data?.single : undefined;
  const [first, ...rest] = single ?? [];
  if (first !== undefined && "Sequence" in first && rest.length === 0) return false;
  const begins =
    first !== undefined &&
    "SpecialToken" in first &&
    rest.length === 1 &&
    "Sequence" in rest[0]! &&
    file.added_tokens?.some(
      ({ id, content }) => id === beginId && content === first.SpecialToken.id,
    );
  if (begins !== true)
    throw refuse("its post_processor adds other tokens than bos_token at the beginning of a text");
  return true;
}

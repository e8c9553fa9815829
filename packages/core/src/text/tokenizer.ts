/**
 * Tokenizers: any Hugging Face `tokenizer.json`, with its chat template if there is one.
 *
 * `encode` never adds tokens on its own (no beginning-of-text): everything a model reads is written
 * by prompts and chat templates.
 */
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { Tokenizer as HuggingFaceTokenizer } from "@huggingface/tokenizers";
import { z } from "zod";
import { UserError } from "../errors.js";
import { readRegularText } from "../files/regular-file.js";
import { type ChatTemplate, parseChatTemplate } from "./chat-template.js";
import { hasForeignPattern, nativePreTokenizer, withinPatternTime } from "./foreign-patterns.js";
import type { Role } from "./prompt-style.js";
import type { Tool } from "./tool.js";
import {
  cachedEncoding,
  type EncodedParts,
  encodeApart,
  specialPattern,
  type TextPart,
  tokenBytes,
  wholeTextEncoder,
} from "./whole-text.js";
import { wordPreTokenizer, wordsOf } from "./words.js";

/** One message of a dialogue, as chat templates take it. */
export interface ChatMessage {
  readonly role: Role;
  readonly content: string;
  /** The calls that an assistant's message makes. */
  readonly tool_calls?: readonly {
    readonly id: string;
    readonly type: "function";
    readonly function: {
      readonly name: string;
      readonly arguments: Readonly<Record<string, unknown>>;
    };
  }[];
  /** The call that a tool's message answers. */
  readonly tool_call_id?: string;
}

/** What a chat template is asked for besides the messages. */
interface ChatRendering {
  /** Whether to end with the opening of the assistant's next turn. */
  readonly addGenerationPrompt?: boolean;
  readonly tools?: readonly Tool[] | undefined;
}

/** The files of a tokenizer, as text. */
export interface TokenizerFiles {
  /** `tokenizer.json` */
  readonly tokenizer: string;
  /** `tokenizer_config.json`: names of special tokens, often the chat template. */
  readonly config?: string;
  /** `chat_template.jinja`, if the template has its own file. */
  readonly chatTemplate?: string;
  /** `generation_config.json`: a chat model may end a turn with further tokens. */
  readonly generation?: string;
}

/** Turns text into token ids and back. */
export interface Tokenizer {
  /** One more than the largest token id. */
  readonly vocabularySize: number;
  /** Ids of the special tokens, which do not stand for text. */
  readonly specialIds: ReadonlySet<number>;
  /** The token that begins a text (`bos_token`), if there is one; `encode` does not add it. */
  readonly beginId: number | undefined;
  /** The token that ends a text or a turn (`eos_token`), if there is one. */
  readonly endId: number | undefined;
  /** All tokens that end a turn, starting with that one: generation_config.json may list more. */
  readonly endIds: readonly number[];
  /** The token that pads batches (`pad_token`), if there is one. */
  readonly padId: number | undefined;
  readonly hasChatTemplate: boolean;
  /** The text of the chat template, if there is one. */
  readonly chatTemplate: string | undefined;
  /** The files it was made from. */
  readonly files: TokenizerFiles;
  /** Ids of the text. With `plain`, special tokens in it are read as ordinary characters. */
  encode(text: string, options?: { readonly plain?: boolean }): readonly number[];
  /**
   * Ids of parts as one text (`whole-text.ts`), or of each by itself. `after` is the id before them.
   */
  encodeParts(
    parts: readonly TextPart[],
    options?: { readonly apart?: boolean; readonly after?: number | undefined },
  ): EncodedParts;
  /** The text of the ids, including special tokens. */
  decode(ids: Iterable<number>): string;
  /** The id of a token, given its exact spelling in the vocabulary. */
  id(token: string): number | undefined;
  /** The bytes that a token stands for; undefined if its spelling does not tell. */
  tokenBytes(id: number): Uint8Array | undefined;
  /** The text of a dialogue, to be encoded; throws if there is no chat template. */
  chat(messages: readonly ChatMessage[], options?: ChatRendering): string;
  /** Writes the files, byte for byte as they were read. */
  save(folder: string): Promise<void>;
}

/** A problem with a tokenizer's files or input, shown to the user as it is. */
export class TokenizerError extends UserError {
  override readonly name = "TokenizerError";
}

const fileNames = {
  tokenizer: "tokenizer.json",
  config: "tokenizer_config.json",
  chatTemplate: "chat_template.jinja",
  generation: "generation_config.json",
} as const;

/** Reads a tokenizer from a folder in Hugging Face layout. */
export async function loadTokenizer(folder: string): Promise<Tokenizer> {
  const [tokenizer, config, chatTemplate, generation] = await Promise.all(
    Object.values(fileNames).map((name) => readIfThere(join(folder, name))),
  );
  if (tokenizer === undefined) {
    throw new TokenizerError(
      `There is no ${fileNames.tokenizer} in ${folder}. Expected a folder in Hugging Face layout; models that only have vocab.json or tokenizer.model must be converted first.`,
    );
  }
  return createTokenizer({ tokenizer, config, chatTemplate, generation }, folder);
}

// Only the parts used here; the library checks the rest when it builds the tokenizer.
const tokenizerSchema = z.looseObject({
  normalizer: z.unknown().optional(),
  pre_tokenizer: z.unknown().optional(),
  decoder: z.unknown().optional(),
  model: z.looseObject({ type: z.enum(["BPE", "WordPiece", "Unigram"]).optional() }),
  added_tokens: z
    .array(z.looseObject({ id: z.int(), content: z.string(), special: z.boolean().optional() }))
    .nullish(),
});
const namedToken = z
  .union([z.string(), z.looseObject({ content: z.string() }).transform((token) => token.content)])
  .nullish();
const configSchema = z.looseObject({
  bos_token: namedToken,
  eos_token: namedToken,
  pad_token: namedToken,
  unk_token: namedToken,
  chat_template: z
    .union([z.string(), z.array(z.looseObject({ name: z.string(), template: z.string() }))])
    .nullish(),
});

const generationSchema = z.looseObject({
  eos_token_id: z.union([z.int().min(0), z.array(z.int().min(0))]).nullish(),
});

/** A tokenizer from the text of its files; `where` names them in errors. */
export function createTokenizer(files: TokenizerFiles, where = "memory"): Tokenizer {
  const json = parseFile(files.tokenizer, tokenizerSchema, `${where}/${fileNames.tokenizer}`);
  const config = parseFile(files.config ?? "{}", configSchema, `${where}/${fileNames.config}`);
  const added = json.added_tokens ?? [];
  checkIds(json.model.vocab, `${where}/${fileNames.tokenizer}`);
  const { normalizer, pre_tokenizer, decoder } = json;
  const foreign = hasForeignPattern([normalizer, pre_tokenizer, decoder]);
  const bounded = <T>(length: number, compute: () => T): T =>
    foreign
      ? withinPatternTime(length, compute, () => new TokenizerError(tooSlow(where)))
      : compute();
  const library = bounded(files.tokenizer.length, () =>
    build(json, added, config, `${where}/${fileNames.tokenizer}`),
  );

  let vocabularySize = 0;
  for (const id of library.get_vocab().values()) vocabularySize = Math.max(vocabularySize, id + 1);
  if (vocabularySize === 0) {
    throw new TokenizerError(`${where}/${fileNames.tokenizer} has an empty vocabulary.`);
  }
  const special = added.filter((token) => token.special === true);
  const id = (token: string | null | undefined) =>
    token == null ? undefined : library.token_to_id(token);
  const endId = id(config.eos_token);
  const generation = `${where}/${fileNames.generation}`;
  const { eos_token_id: ends } = parseFile(files.generation ?? "{}", generationSchema, generation);
  const endIds = [...new Set([endId ?? [], ends ?? []].flat())];
  for (const end of endIds)
    if (library.id_to_token(end) === undefined)
      throw new TokenizerError(
        `${generation}: eos_token_id contains ${end}, which is not a token of ${fileNames.tokenizer} (${vocabularySize} ids). Do these files belong together?`,
      );
  const chatTemplate = files.chatTemplate ?? defaultTemplate(config.chat_template);
  const template = compileTemplate(chatTemplate, where);

  const encodeText = (text: string) =>
    bounded(
      text.length,
      () => library.encode(text, { add_special_tokens: false }).ids as readonly number[],
    );
  const cut = specialCutter(special.map((token) => token.content));
  // If words are encoded independently, cached words do not need the library.
  const byWord = !normalizer && isDeepStrictEqual(pre_tokenizer, wordPreTokenizer);
  const encodeWord = cachedEncoding(encodeText);
  const encodePart = (text: string) =>
    byWord ? wordsOf(text).flatMap(encodeWord) : encodeText(text);
  const encodePlain = (text: string) => cut(text).flatMap(encodePart);
  const encodeCached = cachedEncoding(encodeText);
  const encodePlainCached = cachedEncoding(encodePlain);
  const encode: Tokenizer["encode"] = (text, { plain = false } = {}) =>
    plain ? encodePlainCached(text) : encodeCached(text);
  const bytesOf = tokenBytes({
    byteLevel: JSON.stringify([json.pre_tokenizer, json.decoder]).includes('"ByteLevel"'),
    added: new Set(added.map((token) => token.content)),
    spelling: (one) => library.id_to_token(one),
  });
  const encodeWhole = wholeTextEncoder({
    specials: special.map((token) => token.content),
    bytesOf,
    independent: byWord,
    id: (token) => library.token_to_id(token),
    encode,
  });
  const specialIds = new Set(special.map((token) => token.id));

  return {
    vocabularySize,
    specialIds,
    beginId: id(config.bos_token),
    endId,
    endIds,
    padId: id(config.pad_token),
    hasChatTemplate: template !== undefined,
    chatTemplate,
    files,
    encode,
    encodeParts: (parts, { apart = false, after } = {}) => {
      if (apart) return encodeApart(parts, { encode });
      const isSpecial = after !== undefined && specialIds.has(after);
      return encodeWhole(parts, isSpecial ? library.id_to_token(after) : undefined);
    },
    decode: (ids) => {
      const list = [...ids];
      for (const one of list) {
        if (library.id_to_token(one) === undefined) {
          throw new TokenizerError(
            `Token id ${one} is not in the vocabulary of ${where} (${vocabularySize} ids). Was the text encoded with another tokenizer?`,
          );
        }
      }
      if (list.length === 0) return "";
      return bounded(list.length, () =>
        library.decode(list, { clean_up_tokenization_spaces: false }),
      );
    },
    id: (token) => library.token_to_id(token),
    tokenBytes: bytesOf,
    chat: (messages, { addGenerationPrompt = false, tools } = {}) => {
      if (template === undefined) {
        throw new TokenizerError(
          `The tokenizer in ${where} has no chat template. Expected chat_template in ${fileNames.config} or a file ${fileNames.chatTemplate}; base models have none: use an instruction-tuned model's tokenizer, or a prompt style without dialogue.`,
        );
      }
      try {
        return template.render({
          messages,
          add_generation_prompt: addGenerationPrompt,
          // Templates expect tools in OpenAI's form.
          ...(tools && { tools: tools.map((tool) => ({ type: "function", function: tool })) }),
          bos_token: config.bos_token ?? "",
          eos_token: config.eos_token ?? "",
          pad_token: config.pad_token ?? "",
          unk_token: config.unk_token ?? "",
        });
      } catch (error) {
        throw new TokenizerError(
          `The chat template of ${where} rejected the messages (roles ${messages.map((message) => message.role).join(", ")}): ${reason(error)}`,
          { cause: error },
        );
      }
    },
    save: async (folder) => {
      await mkdir(folder, { recursive: true });
      for (const [key, name] of Object.entries(fileNames)) {
        const text = files[key as keyof TokenizerFiles];
        if (text !== undefined) await writeFile(join(folder, name), text);
      }
    },
  };
}

function build(
  json: z.output<typeof tokenizerSchema>,
  added: readonly object[],
  config: z.output<typeof configSchema>,
  where: string,
): HuggingFaceTokenizer {
  const parts = { decoder: null, post_processor: null, pre_tokenizer: null, normalizer: null };
  try {
    const pre_tokenizer = nativePreTokenizer(json.pre_tokenizer ?? null);
    return new HuggingFaceTokenizer(
      { ...parts, ...json, pre_tokenizer, added_tokens: added },
      config,
    );
  } catch (error) {
    throw new TokenizerError(
      `${where} is valid JSON but not a tokenizer this library can build: ${reason(error)}`,
      { cause: error },
    );
  }
}

const tooSlow = (where: string): string =>
  `The tokenizer in ${where} takes too long: a regular expression in its ${fileNames.tokenizer} (pre_tokenizer, normalizer or decoder) goes back again and again. Those of usual models do not: use another tokenizer.`;

function parseFile<Schema extends z.ZodType>(
  text: string,
  schema: Schema,
  where: string,
): z.output<Schema> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new TokenizerError(
      `${where} is not valid JSON (${reason(error)}). If it is a Git LFS pointer or half a download, fetch it again.`,
      { cause: error },
    );
  }
  const result = schema.safeParse(value);
  if (!result.success) {
    throw new TokenizerError(`${where} is not as expected:\n${z.prettifyError(result.error)}`);
  }
  return result.data;
}

/** The library takes what it finds as an id, and fails later. */
function checkIds(vocabulary: unknown, where: string): void {
  if (typeof vocabulary !== "object" || vocabulary === null || Array.isArray(vocabulary)) return;
  for (const [token, id] of Object.entries(vocabulary))
    if (!Number.isSafeInteger(id) || id < 0)
      throw new TokenizerError(
        `${where}: expected whole numbers as token ids, got ${String(id)} for ${JSON.stringify(token)}.`,
      );
}

function defaultTemplate(
  template:
    | string
    | readonly { readonly name: string; readonly template: string }[]
    | null
    | undefined,
): string | undefined {
  if (template == null || typeof template === "string") return template ?? undefined;
  return (template.find((one) => one.name === "default") ?? template[0])?.template;
}

function compileTemplate(text: string | undefined, where: string): ChatTemplate | undefined {
  if (text === undefined) return undefined;
  try {
    return parseChatTemplate(text);
  } catch (error) {
    throw new TokenizerError(`The chat template of ${where} cannot be parsed: ${reason(error)}`, {
      cause: error,
    });
  }
}

/**
 * Splits a text inside every special token it spells out, so that no part is mistaken for one: a
 * web page that contains `<|im_end|>` must not end the model's turn.
 */
function specialCutter(specials: readonly string[]): (text: string) => readonly string[] {
  const pattern = specialPattern(specials);
  if (pattern === undefined) return (text) => [text];
  return (text) => {
    const parts: string[] = [];
    let from = 0;
    for (const match of text.matchAll(pattern)) {
      const first = [...match[0]][0] as string;
      parts.push(text.slice(from, match.index + first.length));
      from = match.index + first.length;
    }
    if (from < text.length) parts.push(text.slice(from));
    return parts;
  };
}

async function readIfThere(path: string): Promise<string | undefined> {
  try {
    return readRegularText(path);
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw new TokenizerError(`Cannot read ${path}: ${reason(error)}`, { cause: error });
  }
}

function reason(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

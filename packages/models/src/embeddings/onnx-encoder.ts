/**
 * A pretrained sentence encoder on ONNX Runtime, from a folder in the Hugging Face layout:
 * tokenizer.json and model.onnx (or onnx/model.onnx, onnx/model_quantized.onnx). Token vectors are
 * pooled over the text and scaled to length 1.
 */
import { existsSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { Tokenizer } from "@huggingface/tokenizers";
import { UserError } from "@pawl/core/errors.js";
import { readRegularText } from "@pawl/core/files/regular-file.js";
import type { InferenceSession, Tensor } from "onnxruntime-common";
import { sha256File } from "../download/download.js";
import { onnxRuntime } from "../onnx-runtime.js";
import { type Encoder, normalise, type Pooling, pool } from "./encoder.js";

const modelFiles = ["model.onnx", "onnx/model.onnx", "onnx/model_quantized.onnx"];
/** The usual size of the position table of BERT-like encoders. */
const MOST_TOKENS = 512;
/** Texts that run together: more gain little on a CPU and cost memory. */
const BATCH = 16;
/** Maximum characters read per token of the limit: text beyond that could never fit. */
const CHARACTERS_PER_TOKEN = 32;

/** How to run it. */
export interface OnnxEncoderOptions {
  readonly folder: string;
  readonly threads?: number;
  /** Default: mean, as in the sentence-transformers of the MiniLM family. */
  readonly pooling?: Pooling;
}

interface TokenizedText {
  readonly ids: readonly number[];
  readonly at: number;
}

/** Loads the encoder in a folder; errors name what is missing. */
export async function openOnnxEncoder(options: OnnxEncoderOptions): Promise<Encoder> {
  const { folder, pooling = "mean" } = options;
  const model = modelFiles.map((name) => join(folder, name)).find((path) => existsSync(path));
  if (model === undefined || !existsSync(join(folder, "tokenizer.json"))) {
    throw new UserError(
      `${folder} is not a sentence encoder: expected tokenizer.json and one of ${modelFiles.join(", ")}, the layout of sentence-transformers/all-MiniLM-L6-v2 on Hugging Face.`,
    );
  }
  const { tokenizer, mostTokens } = loadTokenizer(folder);
  const session = await openSession(model, options.threads ?? 1);
  // Two models with the same name must not share vectors.
  const checksum = (await sha256File(model)).slice(0, 16);
  const encodeBatch = (texts: readonly TokenizedText[]): Promise<readonly Float32Array[]> =>
    runBatch(session, texts, pooling);
  const tokenize = (text: string, at: number): TokenizedText => {
    const { ids } = tokenizer.encode(text.slice(0, mostTokens * CHARACTERS_PER_TOKEN));
    // The last token ends the text and is kept when the text is truncated.
    const cut = ids.length <= mostTokens ? ids : [...ids.slice(0, mostTokens - 1), ids.at(-1)!];
    return { ids: cut, at };
  };
  const [probe] = await encodeBatch([tokenize("a", 0)]);
  return {
    name: `${basename(resolve(folder))}/${basename(model)} ${checksum}${pooling === "mean" ? "" : `, ${pooling}`}`,
    dimension: probe!.length,
    async encode(texts) {
      const vectors: Float32Array[] = new Array(texts.length);
      // Texts of similar length run together, so that a batch has little padding.
      const tokenized = texts
        .map(tokenize)
        .sort((a, b) => a.ids.length - b.ids.length || a.at - b.at);
      for (let from = 0; from < tokenized.length; from += BATCH) {
        const batch = tokenized.slice(from, from + BATCH);
        const encoded = await encodeBatch(batch);
        for (const [i, { at }] of batch.entries()) vectors[at] = encoded[i]!;
      }
      return vectors;
    },
  };
}

function loadTokenizer(folder: string): {
  readonly tokenizer: Tokenizer;
  readonly mostTokens: number;
} {
  const tokenizerFile = readJson(join(folder, "tokenizer.json"));
  const configPath = join(folder, "tokenizer_config.json");
  const config = existsSync(configPath) ? readJson(configPath) : {};
  const truncation = tokenizerFile.truncation as { readonly max_length?: number } | null;
  const stated = truncation?.max_length ?? Number(config.model_max_length ?? MOST_TOKENS);
  return {
    tokenizer: new Tokenizer(tokenizerFile, config),
    // Some configurations write 10^30 for "no limit".
    mostTokens: Math.max(2, Math.min(stated || MOST_TOKENS, MOST_TOKENS)),
  };
}

function readJson(path: string): Readonly<Record<string, unknown>> {
  try {
    return JSON.parse(readRegularText(path)) as Readonly<Record<string, unknown>>;
  } catch (error) {
    throw new UserError(`cannot read ${path}: ${(error as Error).message}. Download it again.`, {
      cause: error,
    });
  }
}

async function openSession(model: string, threads: number): Promise<InferenceSession> {
  try {
    return await onnxRuntime().InferenceSession.create(model, {
      intraOpNumThreads: threads,
      interOpNumThreads: 1,
      enableMemPattern: false,
      logSeverityLevel: 3,
    });
  } catch (error) {
    throw new UserError(`cannot load ${model}: ${(error as Error).message}. Download it again.`, {
      cause: error,
    });
  }
}

async function runBatch(
  session: InferenceSession,
  texts: readonly TokenizedText[],
  pooling: Pooling,
): Promise<readonly Float32Array[]> {
  const width = Math.max(...texts.map(({ ids }) => ids.length));
  const ids = new BigInt64Array(texts.length * width);
  const mask = new BigInt64Array(ids.length);
  for (const [row, text] of texts.entries()) {
    for (const [column, id] of text.ids.entries()) {
      ids[row * width + column] = BigInt(id);
      mask[row * width + column] = 1n;
    }
  }
  const tensor = (data: BigInt64Array): Tensor =>
    new (onnxRuntime().Tensor)("int64", data, [texts.length, width]);
  const inputs: Readonly<Record<string, () => Tensor>> = {
    input_ids: () => tensor(ids),
    attention_mask: () => tensor(mask),
    token_type_ids: () => tensor(new BigInt64Array(ids.length)),
  };
  const feeds = Object.fromEntries(
    session.inputNames.map((name) => {
      const make = inputs[name];
      if (make === undefined) {
        throw new UserError(
          `the encoder requires an input "${name}"; supported: ${Object.keys(inputs).join(", ")}. Export the model as a plain sentence encoder.`,
        );
      }
      return [name, make()];
    }),
  );
  const output = (await session.run(feeds))[session.outputNames[0]!]!;
  const [rows, columns, dimension] = output.dims;
  if (rows !== texts.length || columns !== width || dimension === undefined) {
    throw new UserError(
      `the encoder's output ${session.outputNames[0]} has the shape [${output.dims}], expected [${texts.length}, ${width}, dimension]: one vector per token.`,
    );
  }
  const data = output.data as Float32Array;
  return texts.map(({ ids: { length } }, row) =>
    normalise(pool({ data, dimension, from: row * width, count: length }, pooling)),
  );
}

/** A GGUF file as a model folder in Hugging Face's layout, with 32-bit weights. */

import { existsSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { basename, join } from "node:path";
import { EngineError } from "@pawl/core/engine/engine.js";
import { requireDiskSpace, writeFolderAtomically } from "@pawl/core/files/atomic-file.js";
import { createTokenizer } from "@pawl/core/text/tokenizer.js";
import { sha256File } from "../download/download.js";
import type { FetchedModel, FetchOptions } from "../model-origin.js";
import { parseModelConfig } from "../weights/config-json.js";
import { writeSafetensors } from "../weights/safetensors.js";
import { ggufConfig } from "./gguf-config.js";
import { type GgufFile, type GgufTensor, openGguf, readGgufTensor } from "./gguf-file.js";
import { type ConvertedTensor, convertTensors, ROPE_FACTORS } from "./gguf-tensors.js";
import { ggufTokenizer } from "./gguf-tokenizer.js";

// The folder of a GGUF file's model: converted once, into a cache keyed by the file's content.
//
// Everything after this sees a model folder, so both engines read GGUF files. The weights take four
// bytes each.

/**
 * Raised when conversion changes, so that folders of an older one are not used. The second one ties
 * matrices that are one, which only concerns files that hold two.
 */
const conversionOf = (gguf: GgufFile): number => (holdsTwoMatrices(gguf) ? 2 : 1);

/** Converts a GGUF file unless that was done before; its SHA-256 may be known already. */
export async function ggufFolder(
  file: string,
  { onNotice, environment }: FetchOptions = {},
  known?: string,
): Promise<FetchedModel> {
  const gguf = openGguf(file);
  const sha256 = known ?? (await sha256File(file));
  const name = basename(file)
    .replace(/\.gguf$/i, "")
    .replace(/[^\w.-]/g, "_");
  const folder = join(
    modelCacheFolder(environment),
    `${name.slice(0, 80)}-${sha256.slice(0, 16)}-${conversionOf(gguf)}`,
  );
  if (!existsSync(join(folder, "config.json"))) {
    const model = await readGgufModel(gguf);
    await requireDiskSpace(folder, model.bytes, `the 32-bit weights of ${file}`);
    if (model.tied !== undefined)
      onNotice?.(
        `${file}: ${model.tied}. To keep them apart, start from a folder of pawl model convert ${file} --keep-output --out FOLDER`,
      );
    onNotice?.(
      `converting ${file} to 32-bit weights (${(model.bytes / 1e6).toFixed(0)} MB) in ${folder}`,
    );
    await writeFolderAtomically(folder, (temporary) => writeGgufModel(model, temporary));
  }
  return { folder, origin: { model: file, sha256 } };
}

/** Pawl's own cache of models; the hub's is the one that Python shares. */
export function modelCacheFolder(
  environment: Readonly<Record<string, string | undefined>> = process.env,
): string {
  return join(environment.XDG_CACHE_HOME || join(homedir(), ".cache"), "pawl", "models");
}

// One matrix quantised twice: files of models with tied embeddings may hold `output.weight` beside
// `token_embd.weight`, because the output is worth more bits. They are one again if they differ by
// no more than their two formats round, and the finer one is kept. Untied matrices are nowhere near:
// they were trained apart.
//
// A weight of b bits in a block that spans about 4.2 standard deviations is off by a step over
// √12, ε = 4.2 / (√12 · 2^b) ≈ 1.2 · 2^−b of the weights' size, so two roundings
// differ by √(ε₁² + ε₂²). Twice that is allowed for the whole matrix, and four times that for a row;
// one row in a thousand may be further off, as those of tokens that were never trained are.

const EMBEDDING = "token_embd.weight";
const OUTPUT = "output.weight";
/** Rows read at once. */
const ROWS = 4096;
const ROWS_APART = 0.001;

/** What was found of two matrices that are one. */
interface TiedMatrices {
  /** The file with one of them, as the embedding. */
  readonly gguf: GgufFile;
  /** What was done, in words. */
  readonly notice: string;
}

/** Whether a file holds an output matrix that may be its embedding once more. */
export const holdsTwoMatrices = ({ tensors }: GgufFile): boolean =>
  tensors.has(EMBEDDING) && tensors.has(OUTPUT);

/** The file with one matrix if it holds one quantised twice; undefined if they are two. */
export async function tieMatrices(gguf: GgufFile): Promise<TiedMatrices | undefined> {
  const embedding = gguf.tensors.get(EMBEDDING);
  const output = gguf.tensors.get(OUTPUT);
  if (embedding === undefined || output === undefined) return undefined;
  if (embedding.shape.join() !== output.shape.join() || embedding.shape.length !== 2)
    return undefined;
  const error = Math.hypot(roundingError(embedding), roundingError(output));
  const { apart, difference, cosine } = await compare(gguf, embedding, output, 4 * error);
  if (difference > 2 * error || apart > ROWS_APART * embedding.shape[0]!) return undefined;
  const [kept, left] = bits(output) >= bits(embedding) ? [output, embedding] : [embedding, output];
  const tensors = new Map([...gguf.tensors, [EMBEDDING, { ...kept, name: EMBEDDING }]]);
  tensors.delete(OUTPUT);
  return {
    gguf: { ...gguf, tensors },
    notice: `${OUTPUT} and ${EMBEDDING} are one matrix quantised twice (cosine ${cosine.toFixed(4)}): ${kept.name} (${kept.format.name}) is used for both, ${left.name} (${left.format.name}) is left out`,
  };
}

/** Bits of a weight that round it: those of a block format, or of a float's fraction. */
function bits({ format: { name } }: GgufTensor): number {
  const floats: Readonly<Record<string, number>> = { F32: 24, F16: 11, BF16: 8 };
  return floats[name] ?? Number(/^Q(\d)_/.exec(name)![1]);
}

const roundingError = (tensor: GgufTensor): number => 1.2 * 2 ** -bits(tensor);

/** Rows further apart than `limit`, the relative difference of all, and their cosine. */
async function compare(gguf: GgufFile, one: GgufTensor, other: GgufTensor, limit: number) {
  const [rows, width] = one.shape as [number, number];
  let [apart, squares, ones, others, product] = [0, 0, 0, 0, 0];
  for (let from = 0; from < rows; from += ROWS) {
    const count = Math.min(ROWS, rows - from);
    const [a, b] = await Promise.all([one, other].map((tensor) => part(gguf, tensor, from, count)));
    for (let row = 0; row < count; row++) {
      let [difference, size] = [0, 0];
      for (let i = row * width; i < (row + 1) * width; i++) {
        const [x, y] = [a![i]!, b![i]!];
        difference += (x - y) ** 2;
        size += x * x;
        others += y * y;
        product += x * y;
      }
      // Not "greater": NaN is no agreement.
      if (!(difference <= limit ** 2 * size)) apart++;
      squares += difference;
      ones += size;
    }
  }
  const cosine = product / Math.sqrt(ones * others);
  return { apart, difference: Math.sqrt(squares / ones), cosine };
}

function part(gguf: GgufFile, tensor: GgufTensor, from: number, rows: number) {
  const bytes = tensor.bytes / tensor.shape[0]!;
  const start = tensor.start + from * bytes;
  return readGgufTensor(gguf, { ...tensor, start, bytes: rows * bytes });
}

/** A model read from a GGUF file, ready to be written; its weights are still in the file. */
export interface GgufModel {
  readonly config: Readonly<Record<string, unknown>>;
  readonly tokenizer: ReturnType<typeof createTokenizer>;
  readonly tensors: readonly ConvertedTensor[];
  /** Bytes of the weights in 32 bits. */
  readonly bytes: number;
  /** What was found if one matrix is there twice, and used once. */
  readonly tied?: string;
}

/** How to read a model. */
export interface GgufOptions {
  /** Whether an output matrix that is the embedding once more is taken as such (default). */
  readonly tie?: boolean;
}

/** Reads everything but the weights, and refuses what an engine could not run. */
export async function readGgufModel(
  file: GgufFile,
  { tie = true }: GgufOptions = {},
): Promise<GgufModel> {
  const tied = tie ? await tieMatrices(file) : undefined;
  const gguf = tied?.gguf ?? file;
  const factors = gguf.tensors.get(ROPE_FACTORS);
  const config = ggufConfig(gguf, factors && (await readGgufTensor(gguf, factors)));
  const model = parseModelConfig(config, gguf.file);
  const tensors = convertTensors(gguf, model);
  const tokenizer = createTokenizer(ggufTokenizer(gguf), gguf.file);
  if (tokenizer.vocabularySize > model.vocabularySize)
    throw new EngineError(
      `${gguf.file}: the tokenizer has ${tokenizer.vocabularySize} tokens, but the model only ${model.vocabularySize}; the file is damaged`,
    );
  const weights = tensors.map(({ shape }) => shape.reduce((product, size) => product * size, 4));
  return {
    config,
    tokenizer,
    tensors,
    bytes: weights.reduce((sum, one) => sum + one, 0),
    ...(tied && { tied: tied.notice }),
  };
}

/** Writes the model into a folder; one tensor at a time is in memory. */
export async function writeGgufModel(model: GgufModel, folder: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  await writeSafetensors(
    join(folder, "model.safetensors"),
    new Map(model.tensors.map(({ name, ...tensor }) => [name, tensor])),
  );
  await model.tokenizer.save(folder);
  await writeFile(join(folder, "config.json"), `${JSON.stringify(model.config, null, 2)}\n`);
}

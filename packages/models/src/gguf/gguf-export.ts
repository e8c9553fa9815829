/**
 * A model in Hugging Face's layout as a GGUF file, for llama.cpp and Ollama: what `gguf-convert.ts`
 * reads, written.
 *
 * The metadata is read back before any weight is written. A setting that it cannot hold would make
 * llama.cpp compute something else in silence, so it is refused by name.
 */
import { basename } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { EngineError } from "@pawl/core/engine/engine.js";
import type { Tokenizer } from "@pawl/core/text/tokenizer.js";
import type { Checkpoint } from "../weights/checkpoint.js";
import { formatModelConfig, parseModelConfig } from "../weights/config-json.js";
import { type ModelConfig, windowOf } from "../weights/model-config.js";
import { OUTPUT_HEAD, type TensorSpec, VALUE_HEAD } from "../weights/tensor-names.js";
import { GGUF_ARCHITECTURES, ggufConfig, llama3Factors } from "./gguf-config.js";
import { ggufName, headsOf, permute, ROPE_FACTORS } from "./gguf-tensors.js";
import { tokenizerMetadata } from "./gguf-tokenizer-metadata.js";
import {
  FORMAT,
  type TensorToWrite,
  tensorBytes,
  type WrittenMetadata,
  type WrittenValue,
  writeGgufFile,
} from "./gguf-write.js";

/** How matrices are written; vectors keep 32 bits. */
export const GGUF_WEIGHTS = ["f16", "q8_0"] as const;
export type GgufWeights = (typeof GGUF_WEIGHTS)[number];
/** Those formats' numbers in `general.file_type`. */
const FILE_TYPE = { f16: 1, q8_0: 7 } as const;

/** llama.cpp's name for an architecture, where it differs from config.json's. */
const ARCHITECTURE_KEYS: Readonly<Record<string, string>> = { mistral: "llama" };
/** Its metadata and its tokenizers have parts that are not written. */
const ONLY_READ = ["gemma3"];

/** A model that can be written: everything that may be refused was. */
export interface GgufExport {
  readonly file: string;
  readonly metadata: WrittenMetadata;
  readonly tensors: readonly TensorToWrite[];
  /** Bytes of the weights. */
  readonly bytes: number;
}

/** What a checkpoint and its tokenizer become in a file. */
export function prepareGguf(
  file: string,
  { folder, config, tensors, read }: Pick<Checkpoint, "folder" | "config" | "tensors" | "read">,
  tokenizer: Tokenizer,
  weights: GgufWeights,
): GgufExport {
  const key = architectureKey(config, folder);
  const factors = ropeFactors(config);
  const metadata = {
    "general.architecture": { string: key },
    "general.name": { string: basename(file).replace(/\.gguf$/i, "") },
    "general.file_type": { u32: FILE_TYPE[weights] },
    "general.quantization_version": { u32: 2 },
    ...modelMetadata(config, key),
    ...tokenizerMetadata(tokenizer, config.vocabularySize, folder),
  };
  checkReadBack(metadata, config, factors, folder);
  const permuted = GGUF_ARCHITECTURES[key]!.permuted === true;
  const written = tensors
    // The critic's head is specific to Pawl.
    .filter(({ name }) => name !== VALUE_HEAD)
    .map(({ name, shape }): TensorToWrite => {
      const there = ggufName(name)!;
      const heads = permuted ? headsOf(there, config) : undefined;
      return {
        name: there,
        shape,
        format: formatOf(shape, weights),
        read: async () => {
          const data = await read(name);
          return heads === undefined ? data : permute(data, heads, config.headSize);
        },
      };
    });
  if (factors !== undefined)
    written.push({
      name: ROPE_FACTORS,
      shape: [factors.length],
      format: FORMAT.f32,
      read: async () => factors,
    });
  const bytes = written.reduce((sum, tensor) => sum + tensorBytes(tensor), 0);
  return { file, metadata, tensors: written, bytes };
}

/** Writes the file; it appears when it is complete. */
export function writeGgufExport({ file, metadata, tensors }: GgufExport): Promise<void> {
  return writeGgufFile(file, metadata, tensors);
}

/** Rows that are no whole blocks keep 16 bits, as in llama.cpp's own files. */
function formatOf(shape: TensorSpec["shape"], weights: GgufWeights): TensorToWrite["format"] {
  if (shape.length === 1) return FORMAT.f32;
  return shape.at(-1)! % 32 === 0 ? FORMAT[weights] : FORMAT.f16;
}

function architectureKey(config: ModelConfig, origin: string): string {
  const { model_type: type } = formatModelConfig(config) as { model_type: string };
  const key = ARCHITECTURE_KEYS[type] ?? type;
  const keys = Object.keys(GGUF_ARCHITECTURES).filter((one) => !ONLY_READ.includes(one));
  if (keys.includes(key)) return key;
  throw new EngineError(
    `${origin}: architecture ${type} cannot be written as GGUF; these can: ${keys.join(", ")}, mistral`,
  );
}

function modelMetadata(config: ModelConfig, key: string): WrittenMetadata {
  const { ropeScaling: scaling, maxContext } = config;
  const values: Readonly<Record<string, WrittenValue>> = {
    block_count: { u32: config.layers },
    context_length: { u32: maxContext },
    embedding_length: { u32: config.hiddenSize },
    feed_forward_length: { u32: config.mlpSize },
    "attention.head_count": { u32: config.heads },
    "attention.head_count_kv": { u32: config.kvHeads },
    "attention.key_length": { u32: config.headSize },
    "attention.value_length": { u32: config.headSize },
    "attention.layer_norm_rms_epsilon": { f32: config.normEps },
    "rope.dimension_count": { u32: config.headSize },
    "rope.freq_base": { f32: config.ropeTheta },
    vocab_size: { u32: config.vocabularySize },
    ...((scaling?.type === "linear" || scaling?.type === "yarn") && {
      "rope.scaling.type": { string: scaling.type },
      "rope.scaling.factor": { f32: scaling.factor },
    }),
    ...(scaling?.type === "yarn" && {
      "rope.scaling.original_context_length": { u32: scaling.originalContext },
    }),
  };
  return Object.fromEntries(
    Object.entries(values).map(([field, value]) => [`${key}.${field}`, value]),
  );
}

/** Llama 3's scaling is written as a factor for each frequency. */
function ropeFactors(config: ModelConfig): Float32Array | undefined {
  const { ropeScaling, ropeTheta: theta, headSize } = config;
  if (ropeScaling?.type !== "llama3") return undefined;
  return Float32Array.from(llama3Factors(ropeScaling.factor, { theta, headSize }));
}

/** Refuses a model that the metadata would describe as another one. */
function checkReadBack(
  metadata: WrittenMetadata,
  config: ModelConfig,
  factors: Float32Array | undefined,
  origin: string,
): void {
  const values = Object.entries(metadata).map(
    ([key, value]) => [key, Object.values(value)[0]] as const,
  );
  const shape = [config.vocabularySize, config.hiddenSize];
  const names = ["token_embd.weight", ...(config.tiedEmbeddings ? [] : [ggufName(OUTPUT_HEAD)!])];
  const json = ggufConfig(
    {
      file: origin,
      size: 0,
      metadata: new Map(values),
      tensors: new Map(names.map((name) => [name, { name, shape } as never])),
    },
    factors,
  );
  const back = arithmeticOf(parseModelConfig(json, origin));
  const wanted = arithmeticOf(config);
  const lost = Object.keys(wanted).filter((name) => !same(back[name], wanted[name]));
  if (lost.length > 0)
    throw new EngineError(
      `${origin}: cannot be written as GGUF, which has no place for its ${lost.join(", ")} (${lost
        .map((name) => JSON.stringify(wanted[name]))
        .join(", ")})`,
    );
}

/** What determines a model's numbers, by words for an error. */
function arithmeticOf(config: ModelConfig): Readonly<Record<string, unknown>> {
  const layers = Array.from({ length: config.layers }, (_, layer) => layer);
  const { ropeScaling: scaling } = config;
  const { qkvBias, qkNorms, normsPlusOne, outputNorms, scaledEmbeddings, gelu } = config;
  return {
    sizes: [
      ...[config.vocabularySize, config.hiddenSize, config.layers, config.heads, config.kvHeads],
      ...[config.headSize, config.mlpSize, config.maxContext],
    ],
    "tied embeddings": config.tiedEmbeddings,
    "rope theta": config.ropeTheta,
    // Within the model's context, a dynamic scaling changes nothing.
    "rope scaling": scaling?.type === "dynamic" ? undefined : scaling,
    "norm epsilon": config.normEps,
    "query scalar": config.queryScalar ?? config.headSize,
    "layers without a rotary embedding": config.unrotatedLayers ?? [],
    "sliding window": layers.map((layer) => windowOf(config, layer) ?? 0),
    biases: [qkvBias, qkNorms, normsPlusOne, outputNorms, scaledEmbeddings, gelu].map(Boolean),
  };
}

/** Equal but for rounding to 32 bits. */
function same(a: unknown, b: unknown): boolean {
  if (typeof a === "number" && typeof b === "number")
    return a === b || Math.abs(a - b) <= 1e-6 * Math.abs(b);
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null)
    return isDeepStrictEqual(a, b);
  const keys = new Set([...Object.keys(a), ...Object.keys(b)]);
  return [...keys].every((key) =>
    same((a as Record<string, unknown>)[key], (b as Record<string, unknown>)[key]),
  );
}

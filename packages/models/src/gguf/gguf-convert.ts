/** A GGUF file as a model folder in Hugging Face's layout, with 32-bit weights. */
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { EngineError } from "@pawl/core/engine/engine.js";
import { createTokenizer } from "@pawl/core/text/tokenizer.js";
import { parseModelConfig } from "../weights/config-json.js";
import { writeSafetensors } from "../weights/safetensors.js";
import { ggufConfig } from "./gguf-config.js";
import { type GgufFile, readGgufTensor } from "./gguf-file.js";
import { type ConvertedTensor, convertTensors, ROPE_FACTORS } from "./gguf-tensors.js";
import { tieMatrices } from "./gguf-tied.js";
import { ggufTokenizer } from "./gguf-tokenizer.js";

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

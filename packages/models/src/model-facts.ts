/**
 * What is known of a model before it is opened. Its weights are not fetched, and not read, unless a
 * file may hold one matrix twice.
 */
import { join } from "node:path";
import { EngineError } from "@pawl/core/engine/engine.js";
import { UserError } from "@pawl/core/errors.js";
import { readRegularText } from "@pawl/core/files/regular-file.js";
import { loadTokenizer, type Tokenizer } from "@pawl/core/text/tokenizer.js";
import { readGgufModel } from "./gguf/gguf-convert.js";
import { type GgufFile, openGguf } from "./gguf/gguf-file.js";
import { weightFiles } from "./weights/checkpoint.js";
import { parseModelConfig } from "./weights/config-json.js";
import type { ModelConfig } from "./weights/model-config.js";
import { openSafetensors } from "./weights/safetensors.js";
import { checkTensors, tensorSpecs } from "./weights/tensor-names.js";

/** A model by its files. */
export interface ModelFacts {
  /** Hugging Face's name of its architecture, or llama.cpp's. */
  readonly architecture: string;
  readonly parameters: number | undefined;
  /** Bytes of its weights as they are stored, and the formats of its numbers. */
  readonly bytes: number;
  readonly formats: readonly string[];
  /** Undefined if the model is not supported. */
  readonly config: ModelConfig | undefined;
  /** Why the embedded engine cannot run it. */
  readonly unsupported: string | undefined;
  /** Undefined if it has none that can be read; `noTokenizer` says why. */
  readonly tokenizer: Tokenizer | undefined;
  readonly noTokenizer: string | undefined;
  /** What was found if one matrix is there twice, and used once. */
  readonly tied?: string | undefined;
}

/** The facts of a GGUF file. */
export async function ggufFacts(file: string): Promise<ModelFacts> {
  const gguf = openGguf(file);
  const read = await outcome(() => readGgufModel(gguf));
  const tensors = [...gguf.tensors.values()];
  const model = read.value;
  return {
    architecture: architectureOf(gguf),
    parameters: sum((model?.tensors ?? tensors).map(({ shape }) => product(shape))),
    bytes: sum(tensors.map(({ bytes }) => bytes)),
    formats: [...new Set(tensors.map(({ format }) => format.name))],
    config: model && parseModelConfig(model.config, file),
    unsupported: read.error,
    tokenizer: model?.tokenizer,
    noTokenizer: read.error,
    tied: model?.tied,
  };
}

const architectureOf = ({ metadata }: GgufFile): string =>
  `${String(metadata.get("general.architecture") ?? "unknown")} (GGUF)`;

/** The facts of a model folder; `listed` are the bytes of weights that are not there. */
export async function folderFacts(
  folder: string,
  tokenizerFolder: string,
  listed?: number,
): Promise<ModelFacts> {
  const file = join(folder, "config.json");
  const json = await readConfig(file);
  const headers = listed === undefined ? await headersOf(folder) : undefined;
  const parsed = await outcome(async () => {
    const config = parseModelConfig(json, file);
    if (headers !== undefined) checkTensors(config, headers.tensors, folder);
    return config;
  });
  const config = parsed.value;
  const tokenizer = await outcome(() => loadTokenizer(tokenizerFolder));
  const architectures = (json as { architectures?: unknown }).architectures;
  const specified =
    config &&
    sum(
      tensorSpecs(config)
        .filter((spec) => !spec.optional)
        .map(({ shape }) => product(shape)),
    );
  return {
    architecture: Array.isArray(architectures) ? architectures.join(", ") : "unknown",
    parameters: headers?.parameters ?? specified,
    bytes: headers?.bytes ?? listed!,
    formats: headers?.formats ?? [],
    config,
    unsupported: parsed.error,
    tokenizer: tokenizer.value,
    noTokenizer: tokenizer.error,
  };
}

async function readConfig(file: string): Promise<object> {
  try {
    const json: unknown = JSON.parse(readRegularText(file));
    if (typeof json === "object" && json !== null) return json;
    throw new Error("not an object");
  } catch (error) {
    throw new EngineError(`${file}: cannot be read: ${(error as Error).message}`, {
      cause: error,
    });
  }
}

async function headersOf(folder: string) {
  const tensors = new Map<string, { dtype: string; shape: readonly number[] }>();
  let bytes = 0;
  for (const name of weightFiles(folder).filter((one) => one.endsWith(".safetensors")))
    for (const [tensor, header] of (await openSafetensors(join(folder, name))).tensors) {
      tensors.set(tensor, header);
      bytes += header.bytes;
    }
  const all = [...tensors.values()];
  return {
    tensors,
    bytes,
    parameters: sum(all.map(({ shape }) => product(shape))),
    formats: [...new Set(all.map(({ dtype }) => dtype))],
  };
}

/** What was computed, or why not, where the reason is part of the facts. */
async function outcome<T>(
  compute: () => Promise<T>,
): Promise<{ readonly value?: T; readonly error?: string }> {
  try {
    return { value: await compute() };
  } catch (error) {
    if (error instanceof UserError) return { error: error.message };
    throw error;
  }
}

const product = (shape: readonly number[]): number => shape.reduce((all, size) => all * size, 1);
const sum = (values: readonly number[]): number => values.reduce((all, one) => all + one, 0);

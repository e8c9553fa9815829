/**
 * Exports a trained model for other programs, with adapters merged: as a plain checkpoint folder, or
 * as a GGUF file.
 */
import { existsSync, readdirSync } from "node:fs";
import { mkdir, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { ConfigError } from "@pawl/core/config/config-error.js";
import { requireDiskSpace, sweep, temporaryName } from "@pawl/core/files/atomic-file.js";
import { requireSeals } from "@pawl/core/runs/checksums.js";
import { loadTokenizer } from "@pawl/core/text/tokenizer.js";
import { type GgufWeights, prepareGguf, writeGgufExport } from "@pawl/models/gguf/gguf-export.js";
import { isGgufName } from "@pawl/models/gguf/gguf-file.js";
import { tokenizerMetadata } from "@pawl/models/gguf/gguf-tokenizer-metadata.js";
import { openCheckpoint, weightFiles, writeCheckpoint } from "@pawl/models/weights/checkpoint.js";
import { VALUE_HEAD } from "@pawl/models/weights/tensor-names.js";
import type { EngineOptions } from "./engine-kind.js";
import { type EngineChoice, engineFor } from "./engines.js";
import { openModel } from "./open-model.js";
import type { SavedModel } from "./saved-model.js";

/** Writes config.json, model.safetensors and the tokenizer's files to a new or empty folder. */
export async function exportModel(
  model: SavedModel,
  folder: string,
  engine: EngineChoice = {},
): Promise<void> {
  if (existsSync(folder) && readdirSync(folder).length > 0)
    throw new ConfigError(`--out: ${folder} is not empty; name a new folder`);
  requireSeals(model.weights, "Restore it, or name another model.");
  const tokenizer = await loadTokenizer(model.tokenizer);
  if (isHere(model, engine)) await exportHere(model.weights, folder);
  else await exportFromServer(model, folder, engine);
  await tokenizer.save(folder);
}

/** Writes the weights and the tokenizer to one new file, for llama.cpp and Ollama. */
export async function exportGguf(
  model: SavedModel,
  file: string,
  weights: GgufWeights,
  engine: EngineChoice = {},
): Promise<void> {
  if (!isGgufName(file))
    throw new ConfigError(`--out: expected a file that ends in .gguf, got ${file}`);
  if (existsSync(file)) throw new ConfigError(`--out: ${file} exists already; name another file`);
  requireSeals(model.weights, "Restore it, or name another model.");
  const tokenizer = await loadTokenizer(model.tokenizer);
  const write = async (folder: string) => {
    const prepared = prepareGguf(file, await openCheckpoint(folder), tokenizer, weights);
    await requireDiskSpace(dirname(file), prepared.bytes, `the weights of ${model.weights}`);
    await mkdir(dirname(file), { recursive: true });
    await writeGgufExport(prepared);
  };
  if (isHere(model, engine)) return write(model.weights);
  // Before weights are fetched: only the number of embeddings is not known yet.
  tokenizerMetadata(tokenizer, tokenizer.vocabularySize, model.tokenizer);
  await mkdir(dirname(file), { recursive: true });
  sweep(dirname(file));
  const fetched = temporaryName(file, "partial");
  try {
    await exportFromServer(model, fetched, engine);
    await write(fetched);
  } finally {
    await rm(fetched, { recursive: true, force: true });
  }
}

const isHere = ({ weights }: SavedModel, engine: EngineChoice): boolean =>
  weightFiles(weights).length > 0 && engine.address === undefined;

async function exportHere(weights: string, folder: string): Promise<void> {
  const { config, tensors, read } = await openCheckpoint(weights);
  // The critic's head is specific to Pawl: other programs reject a file with unknown tensors.
  const plain = tensors.filter(({ name }) => name !== VALUE_HEAD);
  const sources = plain.map(
    ({ name, shape }) => [name, { shape, read: () => read(name) }] as const,
  );
  await writeCheckpoint(folder, config, new Map(sources));
}

const withoutLora = ({ loraAlpha: _, loraTargets: __, ...engine }: EngineOptions) => ({
  ...engine,
  loraRank: 0,
});

async function exportFromServer(
  model: SavedModel,
  folder: string,
  engine: EngineChoice,
): Promise<void> {
  // Opened without an adapter of its own, the engine merges the checkpoint's.
  const loaded = await openModel({
    start: { folder: model.weights, tokenizer: model.tokenizer },
    engine: withoutLora(engineFor(model.config?.engine, engine)),
  });
  try {
    await loaded.engine.save(folder, { optimizer: false, merged: true });
  } finally {
    await loaded.engine.dispose();
  }
}

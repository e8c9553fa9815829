/** The embedded engine itself, as it runs in its worker thread: a model and its operations. */
import { existsSync } from "node:fs";
import { copyFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import type { Vocabulary } from "@pawl/core/constraint/vocabulary.js";
import { type Capabilities, type Engine, EngineError } from "@pawl/core/engine/engine.js";
import { readAdapter, writeAdapter } from "@pawl/models/weights/adapter.js";
import {
  OPTIMIZER_FILE,
  openCheckpoint,
  writeCheckpoint,
} from "@pawl/models/weights/checkpoint.js";
import {
  initialAdapter,
  type LoraOptions,
  modelSpecs,
  trainedSpecs,
} from "@pawl/models/weights/lora.js";
import { checkModelConfig, type ModelConfig } from "@pawl/models/weights/model-config.js";
import { openSafetensors, readTensor, writeSafetensors } from "@pawl/models/weights/safetensors.js";
import { tensorSpecs, VALUE_HEAD } from "@pawl/models/weights/tensor-names.js";
import { type FlatTensors, flatTensors } from "./flat-tensors.js";
import { initialWeights, type PresetName, presetConfig } from "./init.js";
import { createMoments, createWeightLearner, type Moments, type WeightLearner } from "./learner.js";
import {
  createModelWeights,
  type ModelWeights,
  type Parameters,
  type Snapshot,
} from "./model-weights.js";
import type { Program } from "./program.js";
import type { Replica } from "./replica.js";
import { createReplicas } from "./replicas.js";
import { createRouter, knownVocabulary, type Router, type Words } from "./router.js";
import { createSessions, type Sessions } from "./sessions.js";

/** Which model to start with: a preset size, a configuration, or a checkpoint folder. */
export type ModelSource =
  | { readonly preset: PresetName; readonly vocabularySize: number; readonly maxContext?: number }
  | { readonly config: ModelConfig }
  | { readonly folder: string };

export interface EmbeddedOptions {
  readonly model: ModelSource;
  /** Seed of the initial weights, if they are not loaded. Default 0. */
  readonly seed?: number;
  /** Default: the number of cores. The same number of threads gives the same numbers. */
  readonly threads?: number;
  /** Adds a value head, for objectives and results that use values. */
  readonly valueHead?: boolean;
  /** Trains low-rank adapters, and the value head, on frozen weights. Default: trains all weights. */
  readonly lora?: LoraOptions;
}

/** An engine whose capabilities can change with the checkpoint it loads. */
export type Core = Omit<Engine, "capabilities" | "useVocabulary"> & {
  capabilities(): Capabilities;
  /** Told before the first constraint. */
  useVocabulary(vocabulary: Vocabulary): Promise<void>;
};

/** Other files that belong to a checkpoint: they are copied along. */
const COMPANIONS = [
  "tokenizer.json",
  "tokenizer_config.json",
  "special_tokens_map.json",
  "chat_template.jinja",
  "generation_config.json",
];

/**
 * Models above this size, in bytes, compute prefixes that sequences share once. No preset is as large, so
 * that recorded runs of models from scratch replay to the same bytes.
 */
const SHARES_FROM_BYTES = 2 ** 27;

/** What is compiled and started for a configuration, whatever the weights. */
interface Graphs {
  readonly sessions: Sessions;
  readonly replicas: readonly Replica[];
  readonly programs: Map<string, Program>;
}

/** A model and everything that depends on it. */
interface Model {
  readonly config: ModelConfig;
  readonly weights: ModelWeights;
  readonly moments: Moments;
  readonly graphs: Graphs;
  readonly learner: WeightLearner;
  readonly router: Router;
  /** Where it was loaded from. */
  readonly folder: string | undefined;
  reference: Snapshot | undefined;
  /** Samples with the weights that act while others learn. */
  actor: Router | undefined;
  /** A folder of an adapter on these frozen weights, whose file of them checkpoints can share. */
  sharedBase: string | undefined;
}

/** What stays the same when another checkpoint is loaded. */
interface Making {
  readonly threads: number;
  readonly valueHead: boolean;
  readonly seed: number;
  readonly lora: LoraOptions | undefined;
  /** The vocabulary that constraints need, once it was told. */
  readonly words: Words;
}

/** Creates the model and returns its operations. */
export async function createCore(options: EmbeddedOptions, threads: number): Promise<Core> {
  const { valueHead = false, seed = 0, lora } = options;
  const making: Making = { threads, valueHead, seed, lora, words: {} };
  let model = await firstModel(options.model, making);
  let snapshots = 0;
  let loads = 0;
  return {
    capabilities: () => ({
      name: "embedded",
      vocabularySize: model.config.vocabularySize,
      maxContext: model.config.maxContext,
      parameters: parameterCount(model.weights),
      entropies: true,
      values: valueHead,
      fusedObjective: true,
      lora: lora !== undefined,
      discardGradients: true,
      temperatures: true,
      actor: "in turns",
      constraints: true,
    }),
    useVocabulary: async (vocabulary) => {
      making.words.vocabulary = vocabulary;
    },
    sample: async (requests, { weights = "policy" } = {}, onDrawn) => {
      const router = weights === "policy" ? model.router : model.actor;
      if (router === undefined)
        throw new EngineError("there is no actor yet; call snapshotActor first");
      return router.sample(requests, onDrawn);
    },
    forward: async (sequences, { weights = "policy", ...wanted } = {}) => {
      const { reference } = model;
      if (weights === "reference" && reference === undefined)
        throw new EngineError("there is no reference yet; call snapshotReference first");
      const chosen =
        weights === "policy"
          ? model.weights.policy(model.moments.optimSteps)
          : model.weights.frozen("reference", reference!);
      return model.learner.forward(sequences, await chosen, wanted);
    },
    forwardBackward: (...given) => model.learner.forwardBackward(...given),
    optimStep: (params) => {
      model.router.evictAll();
      return model.learner.optimStep(params);
    },
    discardGradients: () => model.learner.discardGradients(),
    snapshotReference: async () => {
      snapshots += 1;
      model.reference = model.weights.snapshot(snapshots);
    },
    snapshotActor: async () => {
      snapshots += 1;
      const { config, graphs, weights } = model;
      const taken = weights.snapshot(snapshots);
      // Its prefix cache is its own: what happens meanwhile to the policy's changes nothing.
      model.actor = createRouter(
        config,
        graphs.replicas,
        () => weights.frozen("actor", taken),
        making.words,
      );
    },
    save: (folder, { optimizer = true, merged = false } = {}) => {
      // A run that resumes from here has an empty prefix cache, and prefilling rounds differently
      // from what is cached: so that it gets the same numbers, this one goes on without it too.
      model.router.evictAll();
      return saveModel(model, making, folder, { optimizer: optimizer && !merged, merged });
    },
    load: async (folder) => {
      loads += 1;
      const loaded = await loadModel(folder, making, { model, loads });
      if (loaded.graphs !== model.graphs) await disposeGraphs(model.graphs);
      // The reference outlives the weights it was copied from, unless it no longer fits.
      if (sameTensors(model.config, loaded.config)) loaded.reference = model.reference;
      model = loaded;
    },
    dispose: () => disposeGraphs(model.graphs),
  };
}

function parameterCount({ base, trained }: Pick<ModelWeights, "base" | "trained">): number {
  return [...base.values()].reduce((sum, { length }) => sum + length, trained.data.length);
}

async function disposeGraphs({ replicas, sessions }: Graphs): Promise<void> {
  await Promise.all(replicas.map((replica) => replica.dispose()));
  await sessions.dispose();
}

async function firstModel(model: ModelSource, making: Making): Promise<Model> {
  if ("folder" in model) return loadModel(model.folder, making);
  const config =
    "config" in model
      ? model.config
      : presetConfig(model.preset, model.vocabularySize, model.maxContext);
  checkModelConfig(config, "the model's configuration");
  const { seed, lora } = making;
  const tensors = emptyTensors(config, making);
  for (const [name, data] of initialWeights(config, seed)) tensors.put(name, data);
  for (const [name, data] of lora ? initialAdapter(config, lora, seed) : [])
    tensors.put(name, data);
  return assemble(config, making, tensors);
}

/** A model's tensors: those that are trained, in one array, and those that are frozen. */
interface Tensors {
  readonly trained: FlatTensors;
  readonly base: Map<string, Float32Array>;
  put(name: string, data: Float32Array): void;
}

/** The value head exists exactly when it is wanted; a new one starts at zero. */
function emptyTensors(config: ModelConfig, { valueHead, lora }: Making): Tensors {
  const trained = flatTensors(trainedSpecs(config, valueHead, lora));
  const base = new Map<string, Float32Array>();
  return {
    trained,
    base,
    put: (name, data) => {
      if (trained.tensors.has(name)) trained.tensors.get(name)!.set(data);
      else if (name !== VALUE_HEAD) base.set(name, data);
    },
  };
}

/** The model that another one replaces. */
interface Before {
  readonly model: Model;
  /** How many have been replaced. */
  readonly loads: number;
}

function assemble(
  config: ModelConfig,
  making: Making,
  { trained, base }: Tensors,
  folder?: string,
  before?: Before,
): Model {
  const { valueHead, lora } = making;
  const graphs =
    before !== undefined && sameGraphs(before.model.config, config)
      ? before.model.graphs
      : createGraphs(config, making, { trained, base });
  const { sessions, replicas } = graphs;
  const frozen = lora === undefined ? undefined : { base, lora };
  const weights = createModelWeights(config, trained, sessions, { frozen, loads: before?.loads });
  const moments = createMoments(trainedSpecs(config, valueHead, lora));
  return {
    config,
    weights,
    moments,
    graphs,
    learner: createWeightLearner({
      ...{ config, lora, weights, moments, ...graphs },
      sharesPrefixes: 4 * parameterCount({ trained, base }) > SHARES_FROM_BYTES,
      vocabulary: () => knownVocabulary(making.words),
    }),
    router: createRouter(config, replicas, () => weights.policy(moments.optimSteps), making.words),
    folder,
    reference: undefined,
    actor: undefined,
    sharedBase: undefined,
  };
}

function createGraphs(
  config: ModelConfig,
  { threads, lora }: Making,
  tensors: Pick<Tensors, "trained" | "base">,
): Graphs {
  const sessions = createSessions(threads);
  const replicas = createReplicas({ config, lora }, 4 * parameterCount(tensors), threads, sessions);
  return { sessions, replicas, programs: new Map() };
}

/** Reads a model; frozen tensors that are already in memory are not held twice. */
async function loadModel(folder: string, making: Making, before?: Before): Promise<Model> {
  const checkpoint = await openCheckpoint(folder);
  const { config, adapter } = checkpoint;
  const { lora, seed } = making;
  const tensors = emptyTensors(config, making);
  for (const { name } of checkpoint.tensors) {
    const data = await checkpoint.read(name, { plain: lora !== undefined });
    const held = before?.model.weights.base.get(name);
    tensors.put(name, held !== undefined && sameNumbers(held, data) ? held : data);
  }
  const adapted =
    lora === undefined
      ? []
      : adapter === undefined
        ? initialAdapter(config, lora, seed)
        : await readAdapter(adapter, config, lora);
  for (const [name, data] of adapted) tensors.put(name, data);
  const model = assemble(config, making, tensors, folder, before);
  await loadMoments(folder, model.moments);
  if (adapter !== undefined && !checkpoint.tensors.some(({ name }) => name === VALUE_HEAD))
    model.sharedBase = folder;
  return model;
}

function sameNumbers(a: Float32Array, b: Float32Array): boolean {
  const bytes = ({ buffer, byteOffset, byteLength }: Float32Array) =>
    Buffer.from(buffer, byteOffset, byteLength);
  return bytes(a).equals(bytes(b));
}

async function saveModel(
  model: Model,
  { lora }: Making,
  folder: string,
  { optimizer, merged }: { readonly optimizer: boolean; readonly merged: boolean },
): Promise<void> {
  const { config, weights, moments } = model;
  const { trained, base } = weights;
  const shapes = new Map(modelSpecs(config, lora).map((spec) => [spec.name, spec.shape]));
  const described = (tensors: Parameters, prefix = "") =>
    [...tensors].map(
      ([name, data]) => [prefix + name, { shape: shapes.get(name)!, data }] as const,
    );
  // If we stop half-way, the optimiser state of other weights would be worse than none.
  await rm(join(folder, OPTIMIZER_FILE), { force: true });
  const apart = lora !== undefined && !merged;
  const { arrays } = merged ? await weights.policy(moments.optimSteps) : { arrays: new Map() };
  const all = new Map([...base, ...trained.tensors, ...arrays]);
  const names = tensorSpecs(config).flatMap(({ name }) => (all.has(name) ? [name] : []));
  const plain = new Map(names.map((name) => [name, all.get(name)!]));
  // A trained value head is part of the weights file, so that file cannot be shared.
  const shares = apart && !trained.tensors.has(VALUE_HEAD);
  await writeCheckpoint(folder, config, new Map(described(plain)), {
    linkTo: shares ? model.sharedBase : undefined,
  });
  if (apart) await writeAdapter(folder, config, lora, trained.tensors);
  if (shares) model.sharedBase ??= folder;
  if (optimizer) {
    const { first, second, optimSteps } = moments;
    const both = [...described(first.tensors, "first."), ...described(second.tensors, "second.")];
    // Before the first optimiser step they are zero, as for a checkpoint without them.
    const stored = new Map(optimSteps === 0 ? [] : both);
    const metadata = { steps: String(optimSteps) };
    await writeSafetensors(join(folder, OPTIMIZER_FILE), stored, { metadata });
  }
  if (model.folder === undefined || model.folder === folder) return;
  for (const file of COMPANIONS)
    if (existsSync(join(model.folder, file)))
      await copyFile(join(model.folder, file), join(folder, file));
}

/** Fills zero moments with those of a checkpoint, if it has any. */
async function loadMoments(folder: string, moments: Moments): Promise<void> {
  const path = join(folder, OPTIMIZER_FILE);
  if (!existsSync(path)) return;
  const file = await openSafetensors(path);
  for (const which of ["first", "second"] as const)
    for (const [name, into] of moments[which].tensors) {
      const stored = `${which}.${name}`;
      if (!file.tensors.has(stored)) continue;
      const data = await readTensor(file, stored);
      if (data.length !== into.length)
        throw new EngineError(
          `${path}: ${stored} has ${data.length} numbers; the weight has ${into.length}`,
        );
      into.set(data);
      // The moments of an adapter that was merged are useless here; without moments the step count
      // restarts too.
      moments.optimSteps = Number(file.metadata.steps ?? 0);
    }
}

function sameTensors(a: ModelConfig, b: ModelConfig): boolean {
  return JSON.stringify(tensorSpecs(a)) === JSON.stringify(tensorSpecs(b));
}

/** Whether two models compute the same, if they had the same weights; an architecture's name means nothing more. */
function sameGraphs(a: ModelConfig, b: ModelConfig): boolean {
  return isDeepStrictEqual({ ...a, architecture: undefined }, { ...b, architecture: undefined });
}

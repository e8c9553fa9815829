/** The embedded engine itself, as it runs in its worker thread: a model and its operations. */
import { copyFile, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { type Capabilities, type Engine, EngineError } from "../engine.js";
import { openCheckpoint, writeCheckpoint } from "../weights/checkpoint.js";
import { checkModelConfig, type ModelConfig } from "../weights/model-config.js";
import { openSafetensors, readTensor, writeSafetensors } from "../weights/safetensors.js";
import { tensorSpecs, VALUE_HEAD } from "../weights/tensor-names.js";
import { type FlatTensors, flatCopy, flatTensors } from "./flat-tensors.js";
import { initialWeights, type PresetName, presetConfig } from "./init.js";
import { createLearner, createMoments, type Learner, type Moments } from "./learner.js";
import type { Replica } from "./replica.js";
import { createReplicas } from "./replicas.js";
import { createRouter, type Router } from "./router.js";
import { createSessions, type Sessions } from "./sessions.js";
import type { WeightSet } from "./weight-set.js";

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
}

/** An engine whose capabilities can change with the checkpoint it loads. */
export type Core = Omit<Engine, "capabilities"> & { capabilities(): Capabilities };

const OPTIMIZER_FILE = "optimizer.safetensors";
/** Other files that belong to a checkpoint: they are copied along. */
const COMPANIONS = [
  "tokenizer.json",
  "tokenizer_config.json",
  "special_tokens_map.json",
  "chat_template.jinja",
  "generation_config.json",
];

/** A model and everything that depends on it. */
interface Model {
  readonly config: ModelConfig;
  readonly parameters: FlatTensors;
  readonly moments: Moments;
  readonly sessions: Sessions;
  readonly replicas: readonly Replica[];
  readonly learner: Learner;
  readonly router: Router;
  /** Where it was loaded from. */
  readonly folder: string | undefined;
  reference: WeightSet | undefined;
}

/** Creates the model and returns its operations. */
export async function createCore(options: EmbeddedOptions, threads: number): Promise<Core> {
  const valueHead = options.valueHead ?? false;
  let model = await firstModel(options, threads, valueHead);
  let snapshots = 0;
  return {
    capabilities: () => ({
      name: "embedded",
      vocabularySize: model.config.vocabularySize,
      maxContext: model.config.maxContext,
      parameters: model.parameters.data.length,
      entropies: true,
      values: model.parameters.tensors.has(VALUE_HEAD),
      fusedObjective: true,
      lora: false,
      discardGradients: true,
      temperatures: true,
    }),
    sample: (requests) => model.router.sample(requests),
    forward: (sequences, { weights = "policy", ...wanted } = {}) => {
      const chosen = weights === "policy" ? policyOf(model) : model.reference;
      if (chosen === undefined)
        throw new EngineError("there is no reference yet; call snapshotReference first");
      return model.learner.forward(sequences, chosen, wanted);
    },
    forwardBackward: (sequences, objective) => model.learner.forwardBackward(sequences, objective),
    optimStep: (params) => {
      model.router.evictAll();
      return model.learner.optimStep(params);
    },
    discardGradients: () => model.learner.discardGradients(),
    snapshotReference: async () => {
      const arrays = new Map(
        [...model.parameters.tensors].map(([name, data]) => [name, data.slice()]),
      );
      snapshots += 1;
      model.reference = { name: "reference", version: snapshots, arrays };
    },
    // There are no adapters here, so whatever is saved is merged already.
    save: (folder, { optimizer = true, merged = false } = {}) =>
      saveModel(model, folder, optimizer && !merged),
    load: async (folder) => {
      const loaded = await loadModel(folder, threads, valueHead);
      await disposeModel(model);
      // The reference outlives the weights it was copied from, unless it no longer fits.
      if (sameTensors(model.config, loaded.config)) loaded.reference = model.reference;
      model = loaded;
    },
    dispose: () => disposeModel(model),
  };
}

/** The weights being trained, as they are now. */
function policyOf({ parameters, moments }: Pick<Model, "parameters" | "moments">): WeightSet {
  return { name: "policy", version: moments.optimSteps, arrays: parameters.tensors };
}

async function disposeModel({ replicas, sessions }: Model): Promise<void> {
  await Promise.all(replicas.map((replica) => replica.dispose()));
  await sessions.dispose();
}

async function firstModel(
  { model, seed = 0 }: EmbeddedOptions,
  threads: number,
  valueHead: boolean,
): Promise<Model> {
  if ("folder" in model) return loadModel(model.folder, threads, valueHead);
  const config =
    "config" in model
      ? model.config
      : presetConfig(model.preset, model.vocabularySize, model.maxContext);
  checkModelConfig(config, "the model's configuration");
  const parameters = flatCopy(config, valueHead, initialWeights(config, seed));
  return assemble(config, parameters, createMoments(config, valueHead), threads);
}

function assemble(
  config: ModelConfig,
  parameters: FlatTensors,
  moments: Moments,
  threads: number,
  folder?: string,
): Model {
  const sessions = createSessions(threads);
  const replicas = createReplicas(config, parameters.data.byteLength, threads, sessions);
  return {
    config,
    parameters,
    moments,
    sessions,
    replicas,
    learner: createLearner(config, parameters, moments, sessions, replicas),
    router: createRouter(config, replicas, () => policyOf({ parameters, moments })),
    folder,
    reference: undefined,
  };
}

async function loadModel(folder: string, threads: number, valueHead: boolean): Promise<Model> {
  const checkpoint = await openCheckpoint(folder);
  const { config } = checkpoint;
  // The value head exists exactly when it is wanted; a new one starts at zero.
  const parameters = flatTensors(config, valueHead);
  for (const { name } of checkpoint.tensors)
    parameters.tensors.get(name)?.set(await checkpoint.read(name));
  const moments = await loadMoments(folder, createMoments(config, valueHead));
  return assemble(config, parameters, moments, threads, folder);
}

async function saveModel(model: Model, folder: string, optimizer: boolean): Promise<void> {
  const { config, parameters, moments } = model;
  const shapes = new Map(tensorSpecs(config).map((spec) => [spec.name, spec.shape]));
  const described = ({ tensors }: FlatTensors, prefix = "") =>
    [...tensors].map(
      ([name, data]) => [prefix + name, { shape: shapes.get(name)!, data }] as const,
    );
  // If we stop half-way, the optimiser state of other weights would be worse than none.
  await rm(join(folder, OPTIMIZER_FILE), { force: true });
  await writeCheckpoint(folder, config, new Map(described(parameters)));
  if (optimizer)
    await writeSafetensors(
      join(folder, OPTIMIZER_FILE),
      // Before the first optimiser step they are zero, as for a checkpoint without them.
      new Map(
        moments.optimSteps === 0
          ? []
          : [...described(moments.first, "first."), ...described(moments.second, "second.")],
      ),
      { metadata: { steps: String(moments.optimSteps) } },
    );
  if (model.folder === undefined || model.folder === folder) return;
  for (const file of COMPANIONS)
    if (await exists(join(model.folder, file)))
      await copyFile(join(model.folder, file), join(folder, file));
}

/** Fills zero moments with those of a checkpoint, if it has any. */
async function loadMoments(folder: string, moments: Moments): Promise<Moments> {
  const path = join(folder, OPTIMIZER_FILE);
  if (!(await exists(path))) return moments;
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
      // An adapter is read merged, so its moments are useless here; without moments the step count
      // restarts too.
      moments.optimSteps = Number(file.metadata.steps ?? 0);
    }
  return moments;
}

function sameTensors(a: ModelConfig, b: ModelConfig): boolean {
  return JSON.stringify(tensorSpecs(a)) === JSON.stringify(tensorSpecs(b));
}

async function exists(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined)) !== undefined;
}

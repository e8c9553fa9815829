/** An engine on another machine: an `Engine` whose work a server does, over HTTP. */
import { randomUUID } from "node:crypto";
import { copyFile, mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { checkAdamParams } from "../embedded/adam.js";
import { checkRequests } from "../embedded/checks.js";
import { type Capabilities, type Engine, EngineError, type OptimResult } from "../engine.js";
import { parseModelConfig } from "../weights/model-config.js";
import {
  CONFIG_FILE,
  downloadCheckpoint,
  onServer,
  planSave,
  readPointer,
  writePointer,
} from "./checkpoints.js";
import { forward, forwardBackward, type Learning } from "./learning.js";
import { probeSignedWeights } from "./probe.js";
import { sampleBatch, sampleEach } from "./sampling.js";
import { modelAbilities, openSession, parse, type Result, type Session } from "./server.js";
import { createTransport, keyOf, type TransportOptions } from "./transport.js";

/** Which server, which model on it, and how patient to be. */
export interface RemoteOptions extends Omit<TransportOptions, "key"> {
  /**
   * A checkpoint folder, which is sent to the server, or a folder with a pointer to a checkpoint that is
   * already there. Absent: the model that the server serves.
   */
  readonly folder?: string;
  /** The name of the model on a server that serves several. */
  readonly model?: string;
  /** Rank of low-rank adapters to train instead of all weights; 0: all weights. Default 0. */
  readonly loraRank?: number;
  /** Whether checkpoints are copied into their folders here, weights and all. Default false. */
  readonly copy?: boolean;
  readonly valueHead?: boolean;
  readonly seed?: number;
  /** Where the key is looked up: PAWL_API_KEY, then TINKER_API_KEY. Default: the process's environment. */
  readonly environment?: Readonly<Record<string, string | undefined>>;
  readonly heartbeatMs?: number;
  readonly connectMs?: number;
  /** Told of what the server lacks and how it is made up for. */
  readonly onNotice?: (message: string) => void;
}

/** A model on the server. */
interface RemoteModel {
  readonly id: string;
  readonly capabilities: Capabilities;
}

const DEFAULT_ADAM = { beta1: 0.9, beta2: 0.999, eps: 1e-8, weightDecay: 0.01 } as const;

/** Connects to a server, sees what it can, and makes a model there. */
export async function connectRemoteEngine(options: RemoteOptions): Promise<Engine> {
  const transport = createTransport({
    ...options,
    key: keyOf(options.environment ?? process.env),
  });
  const session = await openSession(transport, options);
  try {
    if (session.server.pawl === undefined) await probe(session, options);
    return remoteEngine(session, await createModel(session, options), options);
  } catch (error) {
    session.close();
    throw error;
  }
}

async function probe(session: Session, options: RemoteOptions): Promise<void> {
  const { shownUrl } = session.transport;
  const { modelId } = await session.createModel(modelRequest(session, options));
  await probeSignedWeights(shownUrl, (path, body) =>
    session.call(path, { model_id: modelId, seq_id: 1, ...body }),
  );
  await session.unloadModel(modelId);
  options.onNotice?.(
    `the engine server at ${shownUrl} takes no objectives: every update needs a second forward pass`,
  );
}

function modelRequest({ server, transport }: Session, options: RemoteOptions) {
  const { model, loraRank = 0, seed = 0, valueHead = false } = options;
  const names = server.supported_models.map(({ model_name }) => model_name);
  const brought = options.folder !== undefined && server.pawl?.files === true;
  if (model !== undefined && !names.includes(model))
    throw new EngineError(
      `the engine server at ${transport.shownUrl} has no model ${JSON.stringify(model)}; it has: ${names.join(", ") || "none"}`,
    );
  if (names.length === 0 && !brought)
    throw new EngineError(
      `the engine server at ${transport.shownUrl} was started without a model: bring one (model.start: a preset or a folder), or start it with one (pawl serve engine --model FOLDER)`,
    );
  if (model === undefined && names.length > 1)
    throw new EngineError(
      `the engine server at ${transport.shownUrl} has ${names.length} models: say which with engine.model; it has: ${names.join(", ")}`,
    );
  const extended = server.pawl !== undefined;
  for (const [wanted, has, what] of [
    [valueHead, extended, "value head"],
    [loraRank > 0, server.pawl?.lora ?? true, "low-rank adapters (LoRA)"],
  ] as const)
    if (wanted && !has)
      throw new EngineError(
        `the engine server at ${transport.shownUrl} has no ${what}, which the configuration asks for`,
      );
  return {
    base_model: model ?? names[0] ?? "",
    // Plain servers train adapters only, and want to know their rank.
    lora_config: loraRank > 0 ? { rank: loraRank, seed } : extended ? null : { rank: 32, seed },
    ...(extended && { value_head: valueHead, seed }),
    type: "create_model",
  };
}

async function createModel(session: Session, options: RemoteOptions): Promise<RemoteModel> {
  const { server, transport } = session;
  const request = modelRequest(session, options);
  const source = await sourceOf(session, options);
  const { modelId, result } = await session.createModel({ ...request, ...source });
  const capabilities = await capabilitiesOf(session, result, options);
  if (options.valueHead === true && !capabilities.values)
    throw new EngineError(
      `the engine server at ${transport.shownUrl} made a model without the value head it was asked for`,
    );
  if (server.pawl === undefined) await loadPointer(session, modelId, options);
  return { id: modelId, capabilities };
}

/** What a model is made from, where that is not the served model. */
async function sourceOf({ server, transport }: Session, { folder }: RemoteOptions) {
  if (folder === undefined || server.pawl === undefined) return {};
  if (!server.pawl.files)
    throw new EngineError(
      `the engine server at ${transport.shownUrl} takes no files, so the model in ${folder} cannot be sent to it; start the server with that model`,
    );
  const pointer = await readPointer(folder);
  return { base_model: `checkpoint:${await onServer(transport, folder, pointer)}` };
}

/** On a plain server the folder can only be a pointer to what was saved there; else it describes the model. */
async function loadPointer(session: Session, modelId: string, { folder }: RemoteOptions) {
  const pointer = folder === undefined ? undefined : await readPointer(folder);
  if (pointer !== undefined)
    await session.call("load_weights", { model_id: modelId, seq_id: 0, path: pointer.path });
}

async function capabilitiesOf(
  { server, transport }: Session,
  result: Result,
  options: RemoteOptions,
): Promise<Capabilities> {
  const name = `remote (${transport.shownUrl})`;
  const { pawl } = server;
  if (pawl !== undefined) {
    const model = parse(z.object({ pawl: modelAbilities }), result, "create_model").pawl;
    return {
      name,
      vocabularySize: model.vocabulary_size,
      maxContext: model.max_context,
      parameters: model.parameters,
      entropies: model.entropies,
      values: model.values,
      fusedObjective: pawl.objective,
      lora: model.lora,
      discardGradients: pawl.discard,
      temperatures: pawl.temperatures,
      sixteenBits: pawl.dtype !== "float32",
    };
  }
  if (options.folder === undefined)
    throw new EngineError(
      `the engine server at ${transport.shownUrl} does not tell its model's vocabulary and context: set model.start to a folder with that model's config.json and tokenizer.json`,
    );
  const file = join(options.folder, CONFIG_FILE);
  const config = parseModelConfig(JSON.parse(await readFile(file, "utf8")), file);
  return {
    name,
    vocabularySize: config.vocabularySize,
    maxContext: config.maxContext,
    parameters: Number.NaN,
    entropies: false,
    values: false,
    fusedObjective: false,
    lora: true,
    discardGradients: false,
    temperatures: false,
    // It does not say.
    sixteenBits: true,
  };
}

const stepMetrics = z.object({
  metrics: z.record(z.string(), z.unknown()).nullish(),
});

function remoteEngine(session: Session, made: RemoteModel, options: RemoteOptions): Engine {
  const { transport, server } = session;
  const { pawl } = server;
  let { capabilities } = made;
  let sequence = 0;
  /** The path of the copy a plain server samples from, until the weights change. */
  let samplerSource: object | undefined;
  /** A second model, which is the reference on a server that keeps none. */
  let referenceId: string | undefined;
  let disposed = false;

  const change = (path: string, body: object = {}): Promise<Result> => {
    sequence += 1;
    return session.call(path, { model_id: made.id, seq_id: sequence, ...body });
  };
  const ask = (path: string, body: object): Promise<Result> =>
    session.call(path, { model_id: made.id, ...body }, { repeatable: true });
  const learning: Learning = {
    server: transport.shownUrl,
    limits: () => capabilities,
    binary: pawl?.base64 ?? false,
    fused: pawl?.objective ?? false,
    extended: pawl !== undefined,
    temperatures: pawl?.temperatures ?? false,
    values: () => capabilities.values,
    change,
    read: (path, body, weights) => {
      if (weights === "policy" || pawl?.reference === true) return ask(path, body);
      if (referenceId === undefined)
        throw new EngineError("there is no reference yet; call snapshotReference first");
      return ask(path, { ...body, model_id: referenceId });
    },
  };
  const gradNormOf = (result: Result, path: string): OptimResult => {
    const norm = parse(stepMetrics, result, path).metrics?.grad_norm;
    // A plain server may not tell; not a number is what the run's metrics leave out.
    return { gradNorm: typeof norm === "number" ? norm : Number.NaN };
  };
  const saveAs = async (path: string, optimizer: boolean, merged = false): Promise<string> => {
    const saved = await change("save_weights", {
      path,
      ...(pawl !== undefined && { optimizer, ...(merged && { merged }) }),
      type: "save_weights",
    });
    return parse(z.object({ path: z.string() }), saved, "save_weights").path;
  };
  const saveMerged = async (folder: string): Promise<void> => {
    if (pawl?.files !== true)
      throw new EngineError(
        `the engine server at ${transport.shownUrl} gives out no files, so its weights cannot be written to ${folder}; export them there`,
      );
    const path = await saveAs(`exports/${randomUUID()}`, false, true);
    await mkdir(folder, { recursive: true });
    await downloadCheckpoint(transport, path, folder, "all");
    await transport.post("delete_weights", { path });
  };
  const live = <T>(work: () => Promise<T>): Promise<T> =>
    disposed ? Promise.reject(new EngineError("the engine was disposed of")) : work();

  return {
    get capabilities() {
      return capabilities;
    },
    sample: (requests) =>
      live(async () => {
        checkRequests(requests, capabilities);
        if (pawl?.sample_batch === true) return sampleBatch(requests, learning.binary, ask);
        samplerSource ??= await copyForSampling(change);
        return sampleEach(requests, samplerSource, (path, body) =>
          session.call(path, body, { repeatable: true }),
        );
      }),
    forward: (sequences, wanted = {}) =>
      live(async () => {
        if (wanted.entropies === true && !capabilities.entropies)
          throw new EngineError(
            `the engine server at ${transport.shownUrl} computes no entropies, which were asked for`,
          );
        return forward(learning, sequences, wanted);
      }),
    forwardBackward: (sequences, objective) =>
      live(() => forwardBackward(learning, sequences, objective)),
    optimStep: (params) =>
      live(async () => {
        checkAdamParams(params);
        const { beta1, beta2, eps, weightDecay } = { ...DEFAULT_ADAM, ...params };
        const result = await change("optim_step", {
          adam_params: {
            learning_rate: params.learningRate,
            beta1,
            beta2,
            eps,
            weight_decay: weightDecay,
            ...(params.gradClipNorm !== undefined && { grad_clip_norm: params.gradClipNorm }),
          },
          type: "optim_step",
        });
        samplerSource = undefined;
        return gradNormOf(result, "optim_step");
      }),
    discardGradients: () =>
      live(async () => {
        if (!capabilities.discardGradients)
          throw new EngineError(
            `the engine server at ${transport.shownUrl} cannot discard gradients; set gradients.every to 0, so that none are measured`,
          );
        return gradNormOf(await change("discard_gradients"), "discard_gradients");
      }),
    snapshotReference: () =>
      live(async () => {
        if (pawl?.reference === true) {
          await change("snapshot_reference");
          return;
        }
        const path = await saveAs(`reference-${made.id}-${sequence}`, false);
        referenceId ??= (await session.createModel(modelRequest(session, options))).modelId;
        await session.call("load_weights", { model_id: referenceId, seq_id: 0, path });
      }),
    save: (folder, { optimizer = true, merged = false } = {}) =>
      live(async () => {
        if (merged) {
          await saveMerged(folder);
          return;
        }
        const plan = await planSave(folder, pawl === undefined);
        const path = await saveAs(plan.path, optimizer);
        await writePointer(folder, {
          path,
          live: plan.live.map((other) => (other === plan.path ? path : other)),
        });
        if (pawl === undefined) {
          // A plain server does not describe its model, so that a later connection needs this.
          if (options.folder !== undefined && !optimizer)
            await copyFile(join(options.folder, CONFIG_FILE), join(folder, CONFIG_FILE));
          return;
        }
        // A model that is handed on has its tokenizer beside it; checkpoints in between need none.
        if (pawl.files && options.copy === true)
          await downloadCheckpoint(transport, path, folder, "all");
        else if (pawl.files && !optimizer)
          await downloadCheckpoint(transport, path, folder, "all but weights");
        for (const gone of plan.gone) await transport.post("delete_weights", { path: gone });
      }),
    load: (folder) =>
      live(async () => {
        const pointer = await readPointer(folder);
        if (pointer === undefined && pawl?.files !== true)
          throw new EngineError(
            `${folder} holds no pointer to a checkpoint on the engine server, and that server takes no files`,
          );
        const path = await onServer(transport, folder, pointer);
        const loaded = await change("load_weights", {
          path,
          ...(pawl !== undefined && { optimizer: true }),
          type: "load_weights",
        });
        samplerSource = undefined;
        if (pawl !== undefined) capabilities = await capabilitiesOf(session, loaded, options);
      }),
    dispose: async () => {
      if (disposed) return;
      disposed = true;
      await session.unloadModel(made.id);
      if (referenceId !== undefined) await session.unloadModel(referenceId);
      session.close();
    },
  };
}

const samplerCopy = z.object({
  path: z.string().nullish(),
  sampling_session_id: z.string().nullish(),
});

/** What `asample` names as its source: a fresh copy of the weights. */
async function copyForSampling(change: (path: string, body: object) => Promise<Result>) {
  const result = await change("save_weights_for_sampler", {
    path: `sampler-${randomUUID().slice(0, 13)}`,
    type: "save_weights_for_sampler",
  });
  const { path, sampling_session_id } = parse(samplerCopy, result, "save_weights_for_sampler");
  if (typeof sampling_session_id === "string") return { sampling_session_id, seq_id: 1 };
  if (typeof path === "string") return { model_path: path };
  throw new EngineError(
    "the engine server answered save_weights_for_sampler with neither a path nor a sampling session",
  );
}

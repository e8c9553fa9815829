/**
 * A model on a plain Tinker-compatible server (SkyRL, Tinker): it takes no objectives, keeps no
 * reference, serves no files and does not describe its model, so a local folder does that.
 */
import { copyFile, readFile } from "node:fs/promises";
import { join } from "node:path";
import { type Capabilities, EngineError } from "../engine.js";
import { parseModelConfig } from "../weights/model-config.js";
import { CONFIG_FILE, onServer, planSave, readPointer, writePointer } from "./checkpoints.js";
import { copySampling, saveWeights, secondModel } from "./plain-calls.js";
import { probeSignedWeights } from "./probe.js";
import {
  callsTo,
  chooseModel,
  type RemoteModel,
  type RemoteOptions,
  requireOf,
} from "./remote-model.js";
import type { Session } from "./server.js";

/** Plain servers only train adapters, and require their rank. */
const DEFAULT_RANK = 32;

/** Checks that the server computes correctly, and creates a model there. */
export async function createTinkerModel(
  session: Session,
  options: RemoteOptions,
): Promise<RemoteModel> {
  const { transport } = session;
  const { folder, loraRank = 0, seed = 0, valueHead = false } = options;
  const name = chooseModel(session, options.model, false);
  requireOf(session, "value head", valueHead, false);
  const request = {
    base_model: name,
    lora_config: { rank: loraRank > 0 ? loraRank : DEFAULT_RANK, seed },
    type: "create_model",
  };
  await probe(session, request, options);
  const { modelId } = await session.createModel(request);
  const capabilities = await capabilitiesOf(session, folder);
  const pointer = folder === undefined ? undefined : await readPointer(folder);
  if (pointer !== undefined)
    await session.call("load_weights", { model_id: modelId, seq_id: 0, path: pointer.path });

  const calls = callsTo(session, modelId);
  const { change, ask } = calls;
  const copy = copySampling(session, calls);
  const reference = secondModel(session, request);
  return {
    learning: {
      server: transport.shownUrl,
      limits: () => capabilities,
      binary: false,
      fused: false,
      extended: false,
      temperatures: false,
      values: () => false,
      change,
      read: async (path, body, weights) =>
        weights === "policy" ? ask(path, body) : ask(path, { ...body, model_id: reference.id() }),
    },
    capabilities: () => capabilities,
    sample: copy.sample,
    weightsChanged: copy.weightsChanged,
    async snapshotReference() {
      await reference.become(await saveWeights(calls, `reference-${modelId}-${calls.changes()}`));
    },
    async save(into, { optimizer, merged }) {
      if (merged)
        throw new EngineError(
          `the engine server at ${transport.shownUrl} does not serve files, so its weights cannot be written to ${into}; export them on the server`,
        );
      const plan = await planSave(into, true);
      const path = await saveWeights(calls, plan.path);
      await writePointer(into, {
        path,
        live: plan.live.map((other) => (other === plan.path ? path : other)),
      });
      // A later connection needs the description of the model, which the server does not provide.
      if (folder !== undefined && !optimizer)
        await copyFile(join(folder, CONFIG_FILE), join(into, CONFIG_FILE));
    },
    async load(from) {
      const found = await readPointer(from);
      if (found === undefined)
        throw new EngineError(
          `${from} has no pointer to a checkpoint on the engine server, and that server does not accept files`,
        );
      const path = await onServer(transport, from, found);
      await change("load_weights", { path, type: "load_weights" });
      copy.weightsChanged();
    },
    async unload() {
      await session.unloadModel(modelId);
      await reference.unload();
    },
  };
}

async function probe(session: Session, request: object, options: RemoteOptions): Promise<void> {
  const { shownUrl } = session.transport;
  const { modelId } = await session.createModel(request);
  await probeSignedWeights(shownUrl, (path, body) =>
    session.call(path, { model_id: modelId, seq_id: 1, ...body }),
  );
  await session.unloadModel(modelId);
  options.onNotice?.(
    `the engine server at ${shownUrl} does not support objectives: every update needs a second forward pass`,
  );
}

async function capabilitiesOf(
  { transport }: Session,
  folder: string | undefined,
): Promise<Capabilities> {
  if (folder === undefined)
    throw new EngineError(
      `the engine server at ${transport.shownUrl} does not report its model's vocabulary and context: set model.start to a folder with that model's config.json and tokenizer.json`,
    );
  const file = join(folder, CONFIG_FILE);
  const config = parseModelConfig(JSON.parse(await readFile(file, "utf8")), file);
  return {
    name: `remote (${transport.shownUrl})`,
    vocabularySize: config.vocabularySize,
    maxContext: config.maxContext,
    parameters: Number.NaN,
    entropies: false,
    values: false,
    fusedObjective: false,
    lora: true,
    discardGradients: false,
    temperatures: false,
    // It does not report this.
    sixteenBits: true,
  };
}

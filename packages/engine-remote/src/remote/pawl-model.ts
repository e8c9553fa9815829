/**
 * A model on our own server: it reports its capabilities, takes objectives and files, and describes
 * its model.
 */
import { randomUUID } from "node:crypto";
import { mkdir } from "node:fs/promises";
import { type Capabilities, EngineError } from "@pawl/core/engine/engine.js";
import { z } from "zod";
import {
  downloadCheckpoint,
  onServer,
  planSave,
  readPointer,
  writePointer,
} from "./checkpoints.js";
import { copySampling, saveWeights, secondModel } from "./plain-calls.js";
import {
  callsTo,
  chooseModel,
  type RemoteModel,
  type RemoteOptions,
  requireOf,
} from "./remote-model.js";
import { sampleBatch } from "./sampling.js";
import { type Extensions, modelAbilities, parse, type Result, type Session } from "./server.js";
import { sentVocabulary } from "./wire.js";

/** Creates a model on the server, from an uploaded folder if one is given. */
export async function createPawlModel(
  session: Session,
  pawl: Extensions,
  options: RemoteOptions,
): Promise<RemoteModel> {
  const { transport } = session;
  const { folder, loraRank = 0, seed = 0, valueHead = false } = options;
  const name = chooseModel(session, options.model, folder !== undefined && pawl.files);
  requireOf(session, "low-rank adapters (LoRA)", loraRank > 0, pawl.lora ?? true);
  const request = {
    base_model: name,
    lora_config: loraRank > 0 ? { rank: loraRank, seed } : null,
    value_head: valueHead,
    seed,
    type: "create_model",
  };
  const source = folder === undefined ? {} : await sourceOf(session, pawl, folder);
  const { modelId, result } = await session.createModel({ ...request, ...source });
  let capabilities = capabilitiesOf(session, pawl, result);
  if (valueHead && !capabilities.values)
    throw new EngineError(
      `the engine server at ${transport.shownUrl} created a model without the requested value head`,
    );

  const calls = callsTo(session, modelId);
  const { change, ask } = calls;
  // Our server may lack any of its extensions; then the plain calls are used.
  const copy = copySampling(session, () => calls);
  const reference = secondModel(session, request);
  const saveMerged = async (into: string): Promise<void> => {
    if (!pawl.files)
      throw new EngineError(
        `the engine server at ${transport.shownUrl} does not serve files, so its weights cannot be written to ${into}; export them on the server`,
      );
    const merged = { optimizer: false, merged: true };
    const path = await saveWeights(calls, `exports/${randomUUID()}`, merged);
    await mkdir(into, { recursive: true });
    await downloadCheckpoint(transport, path, into, "all");
    await transport.post("delete_weights", { path });
  };
  return {
    server: transport.shownUrl,
    capabilities: () => capabilities,
    binary: pawl.base64,
    extended: true,
    change,
    read: async (path, body, weights) =>
      weights === "policy" || pawl.reference ? ask(path, body) : reference.calls().ask(path, body),
    sample: (requests) =>
      pawl.sample_batch ? sampleBatch(requests, pawl.base64, ask) : copy.sample(requests),
    weightsChanged: copy.weightsChanged,
    async useVocabulary(vocabulary) {
      const sent = { vocabulary: sentVocabulary(vocabulary) };
      await change("use_vocabulary", sent);
      // A second model that keeps the reference's weights scores under the same masks.
      if (!pawl.reference) await reference.calls().change("use_vocabulary", sent);
    },
    async snapshotReference() {
      if (pawl.reference) await change("snapshot_reference");
      else
        await reference.become(
          await saveWeights(calls, `reference-${modelId}-${calls.numbered()}`, {
            optimizer: false,
          }),
        );
    },
    async save(into, { optimizer, merged }) {
      if (merged) return saveMerged(into);
      const plan = await planSave(into, false);
      const path = await saveWeights(calls, plan.path, { optimizer });
      await writePointer(into, { plan, path, optimizer });
      // A model that is handed on needs its tokenizer; intermediate checkpoints do not.
      if (pawl.files && options.copy === true)
        await downloadCheckpoint(transport, path, into, "all");
      else if (pawl.files && !optimizer)
        await downloadCheckpoint(transport, path, into, "all but weights");
      for (const gone of plan.gone) await transport.post("delete_weights", { path: gone });
    },
    async load(from) {
      const pointer = await readPointer(from);
      if (pointer === undefined && !pawl.files)
        throw new EngineError(
          `${from} has no pointer to a checkpoint on the engine server, and that server does not accept files`,
        );
      const path = await onServer(transport, from, pointer);
      const loaded = await change("load_weights", { path, optimizer: true, type: "load_weights" });
      copy.weightsChanged();
      capabilities = capabilitiesOf(session, pawl, loaded);
    },
    async unload() {
      await session.unloadModel(modelId);
      await reference.unload();
    },
  };
}

/** What a model is created from, if that is a folder and not the served model. */
async function sourceOf({ transport }: Session, pawl: Extensions, folder: string) {
  if (!pawl.files)
    throw new EngineError(
      `the engine server at ${transport.shownUrl} does not accept files, so the model in ${folder} cannot be uploaded; start the server with that model`,
    );
  const pointer = await readPointer(folder);
  return { base_model: `checkpoint:${await onServer(transport, folder, pointer)}` };
}

function capabilitiesOf({ transport }: Session, pawl: Extensions, result: Result): Capabilities {
  const model = parse(z.object({ pawl: modelAbilities }), result, "create_model").pawl;
  return {
    name: `remote (${transport.shownUrl})`,
    vocabularySize: model.vocabulary_size,
    maxContext: model.max_context,
    parameters: model.parameters,
    entropies: model.entropies,
    values: model.values,
    fusedObjective: pawl.objective,
    lora: model.lora,
    discardGradients: pawl.discard,
    temperatures: pawl.temperatures,
    constraints: pawl.constraints && pawl.sample_batch,
    scoresBesideSampling: model.scores_beside_sampling,
    sixteenBits: pawl.dtype !== "float32",
  };
}

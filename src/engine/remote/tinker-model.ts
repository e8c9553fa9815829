/**
 * A model on a plain Tinker-compatible server (SkyRL, Tinker): it takes no objectives, keeps no
 * reference, serves no files and does not describe its model, so a local folder does that.
 */
import { randomUUID } from "node:crypto";
import { copyFile } from "node:fs/promises";
import { join } from "node:path";
import { readRegularText } from "../../regular-file.js";
import { type Capabilities, EngineError } from "../engine.js";
import { parseModelConfig } from "../weights/config-json.js";
import { CONFIG_FILE, type Pointer, planSave, readPointer, writePointer } from "./checkpoints.js";
import { copySampling, modelFrom, saveWeights, secondModel } from "./plain-calls.js";
import { forwardOnly, probeForward, probeSignedWeights } from "./probe.js";
import { chooseModel, type RemoteModel, type RemoteOptions, requireOf } from "./remote-model.js";
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
  const hasForward = await probe(session, request, options);
  const capabilities = await capabilitiesOf(session, folder);
  const pointer = folder === undefined ? undefined : await readPointer(folder);

  let calls = await modelFrom(session, request, pointer && weightsAt(pointer));
  const copy = copySampling(session, () => calls);
  const reference = secondModel(session, request);
  return {
    server: transport.shownUrl,
    capabilities: () => capabilities,
    binary: false,
    extended: false,
    change: (path, body) => calls.change(path, body),
    read(path, body, weights) {
      const { ask } = weights === "policy" ? calls : reference.calls();
      return path === "forward" && !hasForward ? ask(...forwardOnly(body)) : ask(path, body);
    },
    sample: copy.sample,
    weightsChanged: copy.weightsChanged,
    async snapshotReference() {
      const name = `reference-${randomUUID().slice(0, 13)}`;
      await reference.become(await saveWeights(calls, name));
    },
    async save(into, { optimizer, merged }) {
      if (merged)
        throw new EngineError(
          `the engine server at ${transport.shownUrl} does not serve files, so its weights cannot be written to ${into}; export them on the server`,
        );
      const plan = await planSave(into, true);
      const path = await saveWeights(calls, plan.path);
      await writePointer(into, { plan, path, optimizer });
      // A later connection needs the description of the model, which the server does not provide.
      if (folder !== undefined && !optimizer)
        await copyFile(join(folder, CONFIG_FILE), join(into, CONFIG_FILE));
    },
    async load(from) {
      const pointer = await readPointer(from);
      if (pointer === undefined)
        throw new EngineError(
          `${from} has no pointer to a checkpoint on the engine server, and that server does not accept files`,
        );
      const before = calls.id;
      calls = await modelFrom(session, request, weightsAt(pointer));
      await session.unloadModel(before);
      copy.weightsChanged();
    },
    async unload() {
      await session.unloadModel(calls.id);
      await reference.unload();
    },
  };
}

const weightsAt = ({ path, optimizer }: Pointer) => ({ path, optimizer });

/** Checks that weights are summed; returns whether there is a call for a forward pass alone. */
async function probe(session: Session, request: object, options: RemoteOptions): Promise<boolean> {
  const { shownUrl } = session.transport;
  const calls = await modelFrom(session, request, undefined);
  const hasForward = await probeForward(session.transport, calls);
  await probeSignedWeights(shownUrl, (path, body) => calls.change(path, body));
  await session.unloadModel(calls.id);
  options.onNotice?.(
    `the engine server at ${shownUrl} does not support objectives: every update needs a second forward pass`,
  );
  return hasForward;
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
  const config = parseModelConfig(JSON.parse(readRegularText(file)), file);
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

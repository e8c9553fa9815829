/**
 * A second engine server as a sampler: one GPU, or one process of a GPU, acts while another learns.
 *
 * It gets the weights through a folder of checkpoints that both servers share. If the engine is not
 * on a server, or its weights are copied, they are sent over the network.
 */
import { join } from "node:path";
import { keyFrom } from "../../http-client.js";
import { type Engine, EngineError } from "../engine.js";
import { exists, onServer, readPointer } from "../remote/checkpoints.js";
import { createPawlModel } from "../remote/pawl-model.js";
import type { RemoteModel } from "../remote/remote-model.js";
import { openSession, serverCapabilities } from "../remote/server.js";
import { createTransport } from "../remote/transport.js";
import type { RemoteSampler, SamplerPlace } from "./sampler.js";
import { createWire, KEY_VARIABLE } from "./wire.js";

/** How far apart log-probabilities of the same weights may be, in nats: wide enough for 16 bits. */
const TOLERANCE = 0.25;

/** Whether an engine server answers there; rejects one that is not ours. */
export async function isEngineServer({ url, retry }: SamplerPlace): Promise<boolean> {
  const wire = createWire(url, retry);
  const { status, json } = await wire.look("/api/v1/get_server_capabilities");
  const answer = serverCapabilities.safeParse(json);
  // vLLM and SGLang have no such call.
  if (status !== 200 || !answer.success || !isAnswer(json)) return false;
  const { pawl } = answer.data;
  if (pawl?.files !== true || !pawl.sample_batch)
    throw new EngineError(
      `the engine server at ${wire.shownUrl} cannot be given weights to sample with; expected one of pawl serve engine, or a vLLM or SGLang server`,
    );
  return true;
}

/** Any JSON object parses as capabilities, of a server that has none. */
const isAnswer = (json: unknown): boolean =>
  typeof json === "object" && json !== null && ("supported_models" in json || "pawl" in json);

/** A model of its own on that server, which follows the engine's. */
export async function engineServerSampler(
  engine: Engine,
  place: SamplerPlace,
): Promise<RemoteSampler> {
  const { shownUrl } = createWire(place.url);
  const name = `the engine server at ${shownUrl}`;
  if (place.model !== undefined)
    throw new EngineError(
      `engine.samplerModel: ${name} samples with a model of this run, not with one of its own; leave it out`,
    );
  const transport = createTransport({ url: shownUrl, key: keyFrom(process.env, [KEY_VARIABLE]) });
  const session = await openSession(transport);
  // A checkpoint's folder is shared, so that nothing is sent; otherwise adapters are merged.
  const isShared = place.engine?.isRemote === true && !place.engine.copy;
  const loraRank = isShared ? place.engine!.loraRank : 0;
  let model: RemoteModel | undefined;
  let shared: string | undefined;

  // Checkpoints take their name from this, and servers forget old uploads by themselves: whatever
  // happens to this process, weights do not stay there for ever.
  const inside = (folder: string): string => join(folder, "uploads", "weights");
  const put = async (folder: string): Promise<void> => {
    await engine.save(inside(folder), { optimizer: false, merged: !isShared });
    shared = (await readPointer(inside(folder)))?.path;
  };
  /** Lets the sampler read what was put there; what was sent for it is removed again. */
  const read = async (folder: string, how: (path: string) => Promise<void>): Promise<void> => {
    const path = await onServer(transport, inside(folder), await readPointer(inside(folder)));
    if (isShared && !(await exists(transport, path)))
      throw new EngineError(
        `${name} does not see the checkpoints of the engine server (${path}): start both with the same --checkpoints FOLDER, or set engine.copy, so that weights are sent over the network`,
      );
    await how(path);
    if (!isShared) await transport.post("delete_weights", { path });
  };

  return {
    name,
    temperatures: session.server.pawl!.temperatures,
    async check(folder) {
      await put(folder);
      const options = { url: shownUrl, folder: inside(folder), loraRank };
      await read(folder, async () => {
        model = await createPawlModel(session, session.server.pawl!, options);
      });
      await checkSame(engine, model!, name);
    },
    put,
    take: (folder) =>
      read(folder, async (path) => {
        const body = { path, optimizer: false, type: "load_weights" };
        await model!.change("load_weights", body);
      }),
    sample: (requests) => model!.sample(requests),
    async dispose() {
      try {
        if (shared !== undefined)
          await transport.post("delete_weights", { path: shared }, { giveUpAfterMs: 0 });
        await model?.unload();
      } catch (error) {
        // It does not matter any more if the sampler is gone.
        if (!(error instanceof EngineError)) throw error;
      } finally {
        session.close();
      }
    },
  };
}

/** Rejects a server that computes something else with the same weights. */
async function checkSame(engine: Engine, model: RemoteModel, name: string): Promise<void> {
  const [samples] = await model.sample([{ prompt: [1], maxTokens: 1, seed: 0 }]);
  const drawn = samples![0]!;
  const [scored] = await engine.forward([{ ids: [1, drawn.tokens[0]!] }]);
  const [a, b] = [drawn.logprobs[0]!, scored!.logprobs[1]!];
  if (!(Math.abs(a - b) < TOLERANCE))
    throw new EngineError(
      `${name} gives token ${drawn.tokens[0]} the log-probability ${a}, and ${engine.capabilities.name} ${b}, with the same weights: start both from the same version of Pawl`,
    );
}

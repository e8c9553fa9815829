/**
 * An engine that learns, with another program to sample for it: vLLM, SGLang or a second engine
 * server.
 *
 * Only `sample` goes there. When the weights have changed, the sampler gets them before it samples
 * again, unless it is to act with those that it has. Its numbers differ slightly from the engine's
 * (other kernels, perhaps another precision). The capability `otherSampler` says so, so that
 * training can correct for it.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { checkRequests, refuseConstraints } from "@pawl/core/engine/checks.js";
import { type Engine, EngineError } from "@pawl/core/engine/engine.js";
import { completionSampler } from "./completions.js";
import { engineServerSampler, isEngineServer } from "./engine-server.js";
import type { SamplerPlace } from "./sampler.js";

/** Where the sampler is, and where weights are put for it. */
export interface SamplerOptions extends SamplerPlace {
  /**
   * A folder that vLLM or SGLang sees under the same path. Default: the folder for temporary files.
   */
  readonly folder?: string;
}

/** Weights on their way to the sampler. */
interface HandedOver {
  /** They are where it can read them, and the engine may change them. */
  readonly saved: Promise<void>;
  readonly loaded: Promise<void>;
}

/** Lets a sampler sample for an engine; rejects one that does not fit, or cannot reload weights. */
export async function withSampler(engine: Engine, options: SamplerOptions): Promise<Engine> {
  const open = (await isEngineServer(options)) ? engineServerSampler : completionSampler;
  const sampler = await open(engine, options);
  let folder: string | undefined;
  /** The engine's present weights; undefined if the sampler has only older ones. */
  let present: HandedOver | undefined;
  /** Those to act with. */
  let actor: HandedOver | undefined;
  let last: Promise<void> = Promise.resolve();

  const weights = async (): Promise<string> => {
    folder ??= await folderIn(resolve(options.folder ?? tmpdir()));
    return join(folder, "weights");
  };
  /** Hands the present weights over, one after another, unless the sampler has them. */
  const handOver = (): HandedOver => {
    if (present !== undefined) return present;
    const saved = last
      .catch(() => undefined)
      .then(weights)
      .then(sampler.put);
    const loaded = saved.then(weights).then(sampler.take);
    const handedOver = { saved, loaded };
    // It may fail while nobody is waiting for it yet.
    loaded.catch(() => {
      if (present === handedOver) present = undefined;
    });
    last = loaded;
    present = handedOver;
    return handedOver;
  };
  const end = async (): Promise<void> => {
    await sampler.dispose();
    if (folder !== undefined) await rm(folder, { recursive: true, force: true });
  };

  const result: Engine = {
    get capabilities() {
      const { name, temperatures } = engine.capabilities;
      return {
        ...engine.capabilities,
        name: `${name}, sampled by ${sampler.name}`,
        otherSampler: true,
        temperatures: temperatures && sampler.temperatures,
        actor: "meanwhile" as const,
        // The other program would have to know what the tokens stand for.
        constraints: false,
      };
    },
    async sample(requests, { weights: which = "policy" } = {}) {
      checkRequests(requests, engine.capabilities);
      refuseConstraints(requests, sampler.name);
      if (which === "policy") {
        if (present === undefined) actor = undefined;
        await handOver().loaded;
      } else if (actor === undefined)
        throw new EngineError(
          `${sampler.name} has no weights to act with; call snapshotActor first`,
        );
      else await actor.loaded;
      return sampler.sample(requests);
    },
    forward: async (sequences, wanted) => engine.forward(sequences, wanted),
    forwardBackward: async (...given) => engine.forwardBackward(...given),
    async optimStep(params) {
      present = undefined;
      return engine.optimStep(params);
    },
    discardGradients: async () => engine.discardGradients(),
    snapshotReference: async () => engine.snapshotReference(),
    async snapshotActor() {
      // It keeps these until others are asked for. While it loads them, the engine can go on.
      actor = handOver();
      await actor.saved;
    },
    save: async (target, what) => engine.save(target, what),
    async load(source) {
      present = undefined;
      return engine.load(source);
    },
    async dispose() {
      await engine.dispose();
      await end();
    },
  };
  try {
    await sampler.check(await weights());
    present = { saved: last, loaded: last };
  } catch (error) {
    await end();
    throw error;
  }
  return result;
}

async function folderIn(parent: string): Promise<string> {
  try {
    return await mkdtemp(join(parent, "pawl-sampler-"));
  } catch (error) {
    throw new EngineError(
      `cannot create a folder for the sampler's weights in ${parent}: ${(error as Error).message}; choose another with engine.samplerFolder`,
      { cause: error },
    );
  }
}

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
import { checkRequests } from "../embedded/checks.js";
import { type Engine, EngineError } from "../engine.js";
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

/** Lets a sampler sample for an engine; rejects one that does not fit, or cannot reload weights. */
export async function withSampler(engine: Engine, options: SamplerOptions): Promise<Engine> {
  const open = (await isEngineServer(options)) ? engineServerSampler : completionSampler;
  const sampler = await open(engine, options);
  let folder: string | undefined;
  let loaded: Promise<void> | undefined;
  let holdsActor = false;

  const weights = async (): Promise<string> => {
    folder ??= await folderIn(resolve(options.folder ?? tmpdir()));
    return join(folder, "weights");
  };
  /** Resolves when the sampler has the engine's weights. */
  const upToDate = (): Promise<void> => {
    loaded ??= weights()
      .then(sampler.renew)
      .catch((error: unknown) => {
        loaded = undefined;
        throw error;
      });
    return loaded;
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
      };
    },
    async sample(requests, { weights: which = "policy" } = {}) {
      checkRequests(requests, engine.capabilities);
      if (which === "policy") {
        if (loaded === undefined) holdsActor = false;
        await upToDate();
      } else if (!holdsActor)
        throw new EngineError(
          `${sampler.name} has no weights to act with; call snapshotActor first`,
        );
      return sampler.sample(requests);
    },
    forward: async (sequences, wanted) => engine.forward(sequences, wanted),
    forwardBackward: async (sequences, objective) => engine.forwardBackward(sequences, objective),
    async optimStep(params) {
      loaded = undefined;
      return engine.optimStep(params);
    },
    discardGradients: async () => engine.discardGradients(),
    snapshotReference: async () => engine.snapshotReference(),
    async snapshotActor() {
      await upToDate();
      // It keeps these until they are asked for again, or others are.
      holdsActor = true;
    },
    save: async (target, what) => engine.save(target, what),
    async load(source) {
      loaded = undefined;
      return engine.load(source);
    },
    async dispose() {
      await engine.dispose();
      await end();
    },
  };
  try {
    await sampler.check(await weights());
    loaded = Promise.resolve();
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

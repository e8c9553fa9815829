/**
 * What every server supports, with calls of the plain protocol: a copy to sample from, a second
 * model, saving.
 */
import { randomUUID } from "node:crypto";
import { EngineError, type Sample, type SampleRequest } from "@pawl/core/engine/engine.js";
import { z } from "zod";
import { callsTo, type ModelCalls } from "./remote-model.js";
import { sampleEach } from "./sampling.js";
import { parse, type Session } from "./server.js";

/** Sampling from a copy of the weights, which is renewed when they have changed. */
export interface CopySampling {
  sample(requests: readonly SampleRequest[]): Promise<readonly (readonly Sample[])[]>;
  weightsChanged(): void;
}

/** Sampling with one call per prompt. */
export function copySampling(session: Session, calls: () => ModelCalls): CopySampling {
  let source: object | undefined;
  let asked = 0;
  return {
    async sample(requests) {
      const from = source ?? (await copyForSampling(calls()));
      source = from;
      return sampleEach(requests, from, (path, body) => {
        // The number makes the request's id, so every request needs another one.
        asked += 1;
        const numbered = "sampling_session_id" in from ? { ...body, seq_id: asked } : body;
        return session.call(path, numbered, { repeatable: true });
      });
    },
    weightsChanged() {
      source = undefined;
    },
  };
}

const samplingCopy = z.object({
  path: z.string().nullish(),
  sampling_session_id: z.string().nullish(),
});

/** The source for `asample`: a fresh copy of the weights. */
async function copyForSampling({ change }: ModelCalls): Promise<object> {
  const result = await change("save_weights_for_sampler", {
    path: `sampler-${randomUUID().slice(0, 13)}`,
    type: "save_weights_for_sampler",
  });
  const { path, sampling_session_id } = parse(samplingCopy, result, "save_weights_for_sampler");
  if (typeof sampling_session_id === "string") return { sampling_session_id };
  if (typeof path === "string") return { model_path: path };
  throw new EngineError(
    "the engine server answered save_weights_for_sampler with neither a path nor a sampling session",
  );
}

/**
 * A new model with weights that were saved at a path. A plain server loads weights only as a
 * model's first call, so other weights mean another model.
 */
export async function modelFrom(
  session: Session,
  request: object,
  saved: { readonly path: string; readonly optimizer: boolean } | undefined,
): Promise<ModelCalls> {
  const { modelId } = await session.createModel(request);
  const calls = callsTo(session, modelId);
  if (saved !== undefined) await calls.change("load_weights", { ...saved, type: "load_weights" });
  return calls;
}

/** The reference as a second model, for a server that does not keep one. */
export interface SecondModel {
  /** Calls to it; throws if there is none yet. */
  calls(): ModelCalls;
  /** Takes the weights that were saved at a path. */
  become(path: string): Promise<void>;
  unload(): Promise<void>;
}

/** No second model yet; it is created when first needed. */
export function secondModel(session: Session, request: object): SecondModel {
  let made: ModelCalls | undefined;
  const unload = async () => {
    if (made !== undefined) await session.unloadModel(made.id);
    made = undefined;
  };
  return {
    calls() {
      if (made === undefined)
        throw new EngineError("there is no reference yet; call snapshotReference first");
      return made;
    },
    async become(path) {
      await unload();
      made = await modelFrom(session, request, { path, optimizer: false });
    },
    unload,
  };
}

/** Saves the weights on the server and returns their path. */
export async function saveWeights(
  { change }: ModelCalls,
  path: string,
  extended: object = {},
): Promise<string> {
  const saved = await change("save_weights", { path, ...extended, type: "save_weights" });
  return parse(z.object({ path: z.string() }), saved, "save_weights").path;
}

/** An engine on another machine: an `Engine` that runs on a server, over HTTP. */

import type { Vocabulary } from "@pawl/core/constraint/vocabulary.js";
import { checkAdamParams, checkRequests, refuseConstraints } from "@pawl/core/engine/checks.js";
import { type Engine, EngineError, type OptimResult } from "@pawl/core/engine/engine.js";
import { keyFrom } from "@pawl/core/http/http-client.js";
import { z } from "zod";
import { forward, forwardBackward } from "./learning.js";
import { createPawlModel } from "./pawl-model.js";
import type { RemoteModel, RemoteOptions } from "./remote-model.js";
import { askServer, openSession, parse, type Result, type Session } from "./server.js";
import { createTinkerModel } from "./tinker-model.js";
import { createTransport, type Transport } from "./transport.js";

const DEFAULT_ADAM = { beta1: 0.9, beta2: 0.999, eps: 1e-8, weightDecay: 0.01 } as const;
/** The variables that may hold the key of an engine server. */
export const KEY_VARIABLES = ["PAWL_API_KEY", "TINKER_API_KEY"];

const transportTo = (options: RemoteOptions): Transport =>
  createTransport({
    ...options,
    key: keyFrom(options.environment ?? process.env, KEY_VARIABLES),
  });

/** Whether a server is one of ours, which makes a model and removes it without a trace. */
export async function isOwnServer(options: RemoteOptions): Promise<boolean> {
  return (await askServer(transportTo(options), options)).pawl !== undefined;
}

/** Connects to a server, checks what it supports, and creates a model there. */
export async function connectRemoteEngine(options: RemoteOptions): Promise<Engine> {
  const transport = transportTo(options);
  const session = await openSession(transport, options);
  try {
    const { pawl } = session.server;
    const model =
      pawl === undefined
        ? await createTinkerModel(session, options)
        : await createPawlModel(session, pawl, options);
    return remoteEngine(session, model);
  } catch (error) {
    session.close();
    throw error;
  }
}

function remoteEngine(session: Session, model: RemoteModel): Engine {
  const { shownUrl } = session.transport;
  let disposed = false;
  const live = <T>(work: () => Promise<T>): Promise<T> =>
    disposed ? Promise.reject(new EngineError("the engine was disposed")) : work();

  let vocabulary: (() => Vocabulary) | undefined;
  let told: Promise<void> | undefined;
  /** Refuses constraints, or says before the first of them what the tokens stand for. */
  const prepareConstraints = async (
    given: Parameters<typeof refuseConstraints>[0],
  ): Promise<void> => {
    if (given.every((one) => (one.constraint ?? one.constraints) === undefined)) return;
    const { constraints } = model.capabilities();
    if (constraints !== true || vocabulary === undefined)
      refuseConstraints(given, `the engine server at ${shownUrl}`);
    told ??= model.useVocabulary!(vocabulary!());
    await told;
  };

  return {
    get capabilities() {
      return model.capabilities();
    },
    sample: (requests, { weights = "policy" } = {}) =>
      live(async () => {
        if (weights === "actor") throw noActor(shownUrl);
        checkRequests(requests, model.capabilities());
        await prepareConstraints(requests);
        return model.sample(requests);
      }),
    forward: (sequences, wanted = {}) =>
      live(async () => {
        if (wanted.entropies === true && !model.capabilities().entropies)
          throw new EngineError(
            `the engine server at ${shownUrl} does not compute entropies, which were requested`,
          );
        await prepareConstraints(sequences);
        return forward(model, sequences, wanted);
      }),
    forwardBackward: (sequences, objective) =>
      live(async () => {
        await prepareConstraints(sequences);
        return forwardBackward(model, sequences, objective);
      }),
    optimStep: (params) =>
      live(async () => {
        checkAdamParams(params);
        const { beta1, beta2, eps, weightDecay } = { ...DEFAULT_ADAM, ...params };
        const result = await model.change("optim_step", {
          adam_params: {
            learning_rate: params.learningRate,
            beta1,
            beta2,
            eps,
            weight_decay: weightDecay,
            grad_clip_norm: params.gradClipNorm,
          },
          type: "optim_step",
        });
        model.weightsChanged();
        return gradNormOf(result, "optim_step");
      }),
    discardGradients: () =>
      live(async () => {
        if (!model.capabilities().discardGradients)
          throw new EngineError(
            `the engine server at ${shownUrl} cannot discard gradients; set gradients.every to 0, so that none are measured`,
          );
        return gradNormOf(await model.change("discard_gradients", {}), "discard_gradients");
      }),
    useVocabulary: (known) => {
      vocabulary = known;
    },
    snapshotReference: () => live(() => model.snapshotReference()),
    snapshotActor: () => live(() => Promise.reject(noActor(shownUrl))),
    save: (folder, { optimizer = true, merged = false } = {}) =>
      live(() => model.save(folder, { optimizer, merged })),
    load: (folder) => live(() => model.load(folder)),
    dispose: async () => {
      if (disposed) return;
      disposed = true;
      await model.unload();
      session.close();
    },
  };
}

const noActor = (shownUrl: string): EngineError =>
  new EngineError(
    `the engine server at ${shownUrl} samples with the weights that it trains, and keeps no others to act with; set overlap to 0, or let a sampler act (engine.sampler)`,
  );

const optimMetrics = z.object({
  metrics: z.record(z.string(), z.unknown()).nullish(),
});

function gradNormOf(result: Result, path: string): OptimResult {
  const norm = parse(optimMetrics, result, path).metrics?.grad_norm;
  // A plain server may not report it; NaN is left out of a run's metrics.
  return { gradNorm: typeof norm === "number" ? norm : Number.NaN };
}

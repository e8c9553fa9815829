/**
 * An engine that learns, with vLLM or SGLang to sample for it.
 *
 * Only `sample` goes to the server. When the weights have changed, they are saved to a folder that
 * both can read, and the server loads them before it samples again, unless it is to act with those
 * that it has. Its numbers differ slightly
 * from the engine's (other kernels, perhaps another precision). The capability `otherSampler` says
 * so, so that training can correct for it.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import type { RetryPolicy } from "../../http-client.js";
import { mixSeed } from "../../random.js";
import { checkRequests } from "../embedded/checks.js";
import { type Engine, EngineError, type Sample, type SampleRequest } from "../engine.js";
import { knownSampledLogprobs } from "../sampled-logprobs.js";
import { type Drawn, findServer, type SamplerServer } from "./dialects.js";
import { checkReload } from "./reload-check.js";
import { createWire } from "./wire.js";

/** Where the sampler is. */
export interface SamplerOptions {
  readonly url: string;
  /** Its model, if it has several. */
  readonly model?: string;
  /**
   * A folder that the sampler sees under the same path. Default: the folder for temporary files.
   */
  readonly folder?: string;
  readonly retry?: Partial<RetryPolicy>;
}

/** Concurrent requests: more than servers batch, fewer than they have sockets. */
const AT_A_TIME = 256;

/** Lets a sampler sample for an engine; rejects one that does not fit, or cannot reload weights. */
export async function withSampler(engine: Engine, options: SamplerOptions): Promise<Engine> {
  const server = await findServer(createWire(options.url, options.retry), options.model);
  const { maxContext, vocabularySize } = engine.capabilities;
  if (server.maxContext < maxContext)
    throw new EngineError(
      `${server.name} takes ${server.maxContext} tokens and the model ${maxContext}: start it with ${server.contextFlag} ${maxContext}`,
    );
  const folder = await folderIn(resolve(options.folder ?? tmpdir()));
  const weights = join(folder, "weights");
  let loaded: Promise<void> | undefined;
  let holdsActor = false;

  const saveWeights = async (): Promise<void> => {
    await engine.save(weights, { optimizer: false, merged: true });
  };
  const load = async (): Promise<void> => {
    await saveWeights();
    await server.reload(weights);
  };
  /** Resolves when the server has the engine's weights. */
  const upToDate = (): Promise<void> => {
    loaded ??= load().catch((error: unknown) => {
      loaded = undefined;
      throw error;
    });
    return loaded;
  };

  const drawOne = async (request: SampleRequest, k: number): Promise<Sample> => {
    const { maxTokens, temperature = 1, topK = 0, topP = 1, stop = [] } = request;
    const drawn = await server.draw({
      prompt: Array.from(request.prompt),
      maxTokens,
      temperature,
      topK,
      topP,
      stopTokens: stop.flatMap((sequence) => (sequence.length === 1 ? sequence : [])),
      seed: k === 0 ? request.seed : mixSeed(request.seed, k),
    });
    return sampleOf(drawn, request, vocabularySize, server.name);
  };

  const result: Engine = {
    get capabilities() {
      const name = `${engine.capabilities.name}, sampled by ${server.name}`;
      // It returns log-probabilities at temperature 1, so at other temperatures the correction
      // cannot be computed.
      const sampling = { otherSampler: true, temperatures: false, actor: "meanwhile" } as const;
      return { ...engine.capabilities, name, ...sampling };
    },
    async sample(requests, { weights: which = "policy" } = {}) {
      checkRequests(requests, engine.capabilities);
      if (which === "policy") {
        if (loaded === undefined) holdsActor = false;
        await upToDate();
      } else if (!holdsActor)
        throw new EngineError(
          `${server.name} has no weights to act with; call snapshotActor first`,
        );
      const samples = requests.map(({ count = 1 }) => new Array<Sample>(count));
      const jobs = requests.flatMap((request, i) =>
        Array.from({ length: request.count ?? 1 }, (_, k) => async () => {
          samples[i]![k] = await drawOne(request, k);
        }),
      );
      await runAll(jobs, AT_A_TIME);
      return samples;
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
      await rm(folder, { recursive: true, force: true });
    },
  };
  try {
    await saveWeights();
    await checkReload(server, weights, vocabularySize);
    await upToDate();
    await checkLogprobs(server, engine);
  } catch (error) {
    await rm(folder, { recursive: true, force: true });
    throw error;
  }
  return result;
}

/**
 * Rejects a server that returns log-probabilities of another distribution than the model's own. The
 * most probable token shows it: the model's own log-probability is the same at all temperatures,
 * and not 0 if nothing else can be drawn.
 */
async function checkLogprobs(server: SamplerServer, engine: Engine): Promise<void> {
  // Top-k 1 would not work: SGLang then returns the model's own in any case.
  const draw = { prompt: [1], maxTokens: 1, topK: 0, topP: 1e-6, stopTokens: [], seed: 0 };
  const [cold, hot] = await Promise.all(
    [0.5, 2].map((temperature) => server.draw({ ...draw, temperature })),
  );
  const [scored] = await engine.forward([{ ids: [1, cold!.tokens[0]!] }]);
  const [a, b] = [cold!.logprobs[0]!, hot!.logprobs[0]!];
  const isCut = a === 0 && scored!.logprobs[1]! < -1e-3;
  if (isCut || Math.abs(a - b) > 1e-3)
    throw new EngineError(
      `${server.name} returns log-probabilities of the distribution it samples from (${a} and ${b} for the most probable token at temperatures 0.5 and 2), expected the model's own: start it with ${server.ownLogprobs}`,
    );
}

/**
 * The answer as a sample, cut after its first stop sequence; rejects an answer that does not fit
 * the request.
 */
function sampleOf(
  { tokens, logprobs }: Drawn,
  request: SampleRequest,
  vocabularySize: number,
  name: string,
): Sample {
  const { maxTokens, stop = [] } = request;
  const foreign = tokens.find((id) => id < 0 || id >= vocabularySize);
  if (foreign !== undefined)
    throw new EngineError(
      `${name} drew token ${foreign}, but the model has ${vocabularySize}: it serves another model; start it with a checkpoint of this one`,
    );
  if (logprobs.length !== tokens.length || !logprobs.every(Number.isFinite))
    throw new EngineError(
      `${name} sent ${tokens.length} tokens with log-probabilities ${JSON.stringify(logprobs.slice(0, 8))}; expected a finite one for each`,
    );
  const end = endOf(tokens, stop);
  if (end === undefined && tokens.length !== maxTokens)
    throw new EngineError(
      `${name} ended a sample after ${tokens.length} of ${maxTokens} tokens without one of our stop sequences: check its log, and whether its model's generation_config.json has further stop tokens`,
    );
  const own = logprobs.slice(0, end);
  const known = knownSampledLogprobs(request, own);
  return {
    tokens: tokens.slice(0, end),
    logprobs: own,
    // A server only returns the model's own log-probabilities; we add only what follows exactly
    // from them.
    ...(known && { sampledLogprobs: known }),
    stopReason: end === undefined ? "length" : "stop",
  };
}

/**
 * Where the first stop sequence ends, if there is one. Servers stop at single tokens by themselves;
 * after longer stop sequences they continue, and the rest is cut off here: the same samples, at the
 * cost of some tokens.
 */
function endOf(
  tokens: readonly number[],
  stop: readonly (readonly number[])[],
): number | undefined {
  for (let end = 1; end <= tokens.length; end++)
    if (
      stop.some(
        (sequence) =>
          sequence.length <= end &&
          sequence.every((id, i) => tokens[end - sequence.length + i] === id),
      )
    )
      return end;
  return undefined;
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

/** Runs all jobs with limited concurrency; after a failure, no further job is started. */
async function runAll(jobs: readonly (() => Promise<void>)[], atATime: number): Promise<void> {
  let next = 0;
  const worker = async (): Promise<void> => {
    try {
      while (next < jobs.length) await jobs[next++]!();
    } catch (error) {
      next = jobs.length;
      throw error;
    }
  };
  await Promise.all(Array.from({ length: Math.min(atATime, jobs.length) }, worker));
}

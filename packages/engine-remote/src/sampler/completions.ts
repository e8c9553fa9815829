/**
 * vLLM or SGLang as a sampler: one request for each sample.
 *
 * New weights are saved to a folder that both can read, and loaded from there.
 */

import { constants } from "node:fs";
import { cp, open, rm } from "node:fs/promises";
import { join } from "node:path";
import {
  type Engine,
  EngineError,
  type Sample,
  type SampleRequest,
} from "@pawl/core/engine/engine.js";
import { mixSeed } from "@pawl/core/random.js";
import { openSafetensors } from "@pawl/models/weights/safetensors.js";
import { EMBEDDING, OUTPUT_HEAD } from "@pawl/models/weights/tensor-names.js";
import { sampledLogprobsOf } from "../remote/sampling.js";
import { type Drawn, findServer, type SamplerServer } from "./dialects.js";
import type { RemoteSampler, SamplerPlace } from "./sampler.js";
import { createWire } from "./wire.js";

// Checks that a sampler really reloads its weights.
//
// It gets a copy of the weights whose output head is the same for every token, so that all tokens
// are equally probable. If it returns another log-probability, it has kept the old head. In
// practice that is the weight that is kept, because it may be a second copy of the embedding (vLLM
// 0.32 on CPUs, with tied embeddings).

/** A file of floats of any length filled with this byte holds one small positive number throughout. */
const FILLING = 0x3c;
const CHUNK_BYTES = 1 << 24;
/** Wide enough for 16-bit arithmetic, narrow enough to detect a head after very little training. */
const TOLERANCE = 0.01;

/** Throws if the sampler keeps old weights; leaves it with useless weights. */
async function checkReload(
  server: SamplerServer,
  weights: string,
  vocabularySize: number,
): Promise<void> {
  const changed = `${weights}-even`;
  try {
    await cp(weights, changed, { recursive: true, mode: constants.COPYFILE_FICLONE });
    await evenHead(join(changed, "model.safetensors"));
    await server.reload(changed);
  } finally {
    await rm(changed, { recursive: true, force: true });
  }
  const plain = { temperature: 1, topK: 0, topP: 1, stopTokens: [], seed: 0 };
  const { logprobs } = await server.draw({ ...plain, prompt: [1], maxTokens: 1 });
  const expected = -Math.log(vocabularySize);
  if (!(Math.abs(logprobs[0]! - expected) < TOLERANCE))
    throw new EngineError(
      `${server.name} keeps old weights, or has a different vocabulary: it was given an output head under which each of ${vocabularySize} tokens has the log-probability ${expected.toFixed(3)}, but it returned ${logprobs[0]}. On a CPU, vLLM keeps the old head of a model with tied embeddings (tie_word_embeddings): train a model with an untied head there`,
    );
}

/**
 * Makes all rows of the output head equal, in place; if the file has no head, the embedding is the
 * head.
 */
async function evenHead(file: string): Promise<void> {
  const { tensors } = await openSafetensors(file);
  const head = tensors.get(OUTPUT_HEAD) ?? tensors.get(EMBEDDING);
  if (head === undefined)
    throw new EngineError(`${file} has neither ${OUTPUT_HEAD} nor ${EMBEDDING}`);
  const filling = Buffer.alloc(Math.min(CHUNK_BYTES, head.bytes), FILLING);
  const handle = await open(file, "r+");
  try {
    for (let done = 0; done < head.bytes; ) {
      const length = Math.min(filling.length, head.bytes - done);
      done += (await handle.write(filling, 0, length, head.start + done)).bytesWritten;
    }
  } finally {
    await handle.close();
  }
}

/** Concurrent requests: more than servers batch, fewer than they have sockets. */
const AT_A_TIME = 256;

/** Finds the server; rejects one that does not fit the engine, or cannot reload weights. */
export async function completionSampler(
  engine: Engine,
  place: SamplerPlace,
): Promise<RemoteSampler> {
  const server = await findServer(createWire(place.url, place.retry), place.model);
  const { maxContext, vocabularySize } = engine.capabilities;
  if (server.maxContext < maxContext)
    throw new EngineError(
      `${server.name} takes ${server.maxContext} tokens and the model ${maxContext}: start it with ${server.contextFlag} ${maxContext}`,
    );
  if (place.engine?.isRemote === true && !place.engine.copy)
    throw new EngineError(
      `${server.name} cannot read the weights, which stay on the engine server: set engine.copy`,
    );
  const saveWeights = (weights: string): Promise<void> =>
    engine.save(weights, { optimizer: false, merged: true });
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
  return {
    name: server.name,
    // It returns log-probabilities at temperature 1, so at other temperatures the correction
    // cannot be computed.
    temperatures: false,
    async check(weights) {
      await saveWeights(weights);
      await checkReload(server, weights, vocabularySize);
      await server.reload(weights);
      await checkLogprobs(server, engine);
    },
    put: saveWeights,
    take: (weights) => server.reload(weights),
    async sample(requests) {
      const samples = requests.map(({ count = 1 }) => new Array<Sample>(count));
      const jobs = requests.flatMap((request, i) =>
        Array.from({ length: request.count ?? 1 }, (_, k) => async () => {
          samples[i]![k] = await drawOne(request, k);
        }),
      );
      await runAll(jobs, AT_A_TIME);
      return samples;
    },
    dispose: async () => undefined,
  };
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
  return {
    tokens: tokens.slice(0, end),
    logprobs: own,
    // A server only returns the model's own log-probabilities; we add only what follows exactly
    // from them.
    sampledLogprobs: sampledLogprobsOf(request, own),
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

/**
 * Sampling on a server: a whole batch of prompts in one call if it can, otherwise one call per
 * prompt.
 */

import {
  EngineError,
  type Sample,
  type SampleRequest,
  type SamplingOptions,
} from "@pawl/core/engine/engine.js";
import { z } from "zod";
import { parse, type Result } from "./server.js";
import { numbersOf, sentConstraints, tensorOf, tensorSchema } from "./wire.js";

const sequenceSchema = z.object({
  stop_reason: z.string(),
  tokens: z.array(z.int()),
  logprobs: tensorSchema,
  sampled_logprobs: tensorSchema.optional(),
});
const sampleResult = z.object({ sequences: z.array(sequenceSchema) });
const batchResult = z.object({ results: z.array(sampleResult) });

/** All requests at once, from the model's own weights. */
export async function sampleBatch(
  requests: readonly SampleRequest[],
  binary: boolean,
  call: (path: string, body: object) => Promise<Result>,
): Promise<readonly (readonly Sample[])[]> {
  if (requests.length === 0) return [];
  const held = sentConstraints();
  const result = await call("sample_batch", {
    requests: requests.map((request) => ({
      ...(request.constraint && {
        constraint: held.numberOf(request.constraint),
        begun: request.begun ?? 0,
      }),
      prompt: tensorOf(request.prompt, "int64", binary),
      num_samples: request.count ?? 1,
      continued: isContinued(request) ? true : undefined,
      sampling_params: {
        ...paramsOf(request),
        top_k: request.topK ?? 0,
        stop: request.stop ?? [],
      },
    })),
    ...held.body(),
  });
  const { results } = parse(batchResult, result, "sample_batch");
  return requests.map((request, i) => samplesOf(request, results[i]));
}

/** The server keeps a prompt with its sample; samples of one prompt share it anyway. */
const isContinued = ({ continued = false, count = 1 }: SampleRequest): boolean =>
  continued !== false && continued !== "branch" && count === 1;

/** One call per request, from a copy of the weights that the server made for sampling. */
export async function sampleEach(
  requests: readonly SampleRequest[],
  source: object,
  call: (path: string, body: object) => Promise<Result>,
): Promise<readonly (readonly Sample[])[]> {
  return Promise.all(
    requests.map(async (request, i) => {
      const stop = (request.stop ?? []).map((sequence) => {
        if (sequence.length !== 1)
          throw new EngineError(
            `request ${i}: this engine server only stops at single tokens, but a stop sequence has ${sequence.length}; stop at one token, or use our own server (pawl serve engine)`,
          );
        return sequence[0]!;
      });
      const result = await call("asample", {
        ...source,
        prompt: { chunks: [{ type: "encoded_text", tokens: Array.from(request.prompt) }] },
        num_samples: request.count ?? 1,
        sampling_params: {
          ...paramsOf(request),
          // Common samplers take seeds of 31 bits.
          seed: request.seed & 0x7fffffff,
          // The plain protocol writes "all tokens" as -1.
          top_k: request.topK || -1,
          stop,
        },
        type: "sample",
      });
      return samplesOf(request, parse(sampleResult, result, "asample"));
    }),
  );
}

function paramsOf(request: SampleRequest) {
  return {
    max_tokens: request.maxTokens,
    seed: request.seed,
    temperature: request.temperature ?? 1,
    top_p: request.topP ?? 1,
  };
}

function samplesOf(
  request: SampleRequest,
  result: z.output<typeof sampleResult> | undefined,
): readonly Sample[] {
  const { count = 1 } = request;
  const sequences = result?.sequences ?? [];
  if (sequences.length !== count)
    throw new EngineError(
      `the engine server sent ${sequences.length} samples of a prompt; expected ${count}`,
    );
  return sequences.map((sequence) => {
    const logprobs = Array.from(numbersOf(sequence.logprobs));
    const sampledLogprobs =
      sequence.sampled_logprobs === undefined
        ? sampledLogprobsOf(request, logprobs)
        : Array.from(numbersOf(sequence.sampled_logprobs));
    for (const numbers of [logprobs, sampledLogprobs ?? logprobs])
      if (numbers.length !== sequence.tokens.length)
        throw new EngineError(
          `the engine server sent ${numbers.length} log-probabilities for a sample of ${sequence.tokens.length} tokens`,
        );
    return {
      tokens: sequence.tokens,
      logprobs,
      sampledLogprobs,
      stopReason: sequence.stop_reason === "length" ? "length" : "stop",
    };
  });
}

/**
 * Log-probabilities of a sample under the distribution it was drawn from, if the model's own determine
 * them: the same at temperature 1 without
 * truncation, 0 at temperature 0. Undefined otherwise, because a tempered distribution has a
 * different normaliser.
 */
export function sampledLogprobsOf(
  { temperature = 1, topK = 0, topP = 1 }: Omit<SamplingOptions, "maxTokens">,
  own: readonly number[],
): readonly number[] | undefined {
  if (temperature === 0) return own.map(() => 0);
  return temperature === 1 && topK === 0 && topP === 1 ? own : undefined;
}

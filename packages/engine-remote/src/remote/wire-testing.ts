/**
 * The server's side of the wire format, for the test server: requests to the engine's form, and
 * results back.
 */
import type { ForwardResult, Sample, TrainSequence } from "@pawl/core/engine/engine.js";
import { numbersOf, tensorOf } from "./wire.js";

/** The body of a pass. */
export interface Input {
  readonly data: readonly SentDatum[];
  readonly loss_fn: string;
  readonly loss_fn_config?: Readonly<Record<string, unknown>>;
}

/** A sequence as it arrives. */
export interface SentDatum {
  readonly model_input: { readonly chunks: readonly { readonly tokens: readonly number[] }[] };
  readonly loss_fn_inputs: Readonly<Record<string, Parameters<typeof numbersOf>[0]>>;
}

/** A request for samples as it arrives. */
export interface Asked {
  readonly prompt: Parameters<typeof numbersOf>[0];
  readonly num_samples: number;
  readonly sampling_params: Readonly<Record<string, unknown>>;
}

/** The sampling parameters in the engine's form. */
export function samplingOf(params: Asked["sampling_params"]) {
  const { max_tokens, seed, temperature, top_k, top_p } = params as Readonly<
    Record<string, number>
  >;
  return {
    maxTokens: max_tokens!,
    seed: seed!,
    temperature: temperature!,
    topK: Math.max(0, top_k!),
    topP: top_p!,
  };
}

/** A sample as it is sent. */
export function sent({ tokens, logprobs, sampledLogprobs, stopReason }: Sample) {
  return { tokens, logprobs, sampled_logprobs: sampledLogprobs, stop_reason: stopReason };
}

/** Entry j of what is sent belongs to token j + 1. */
export function shifted(values: Float32Array) {
  return tensorOf(values.subarray(1), "float32", true);
}

/** A sequence in the engine's form. */
export function sequenceOf({ model_input, loss_fn_inputs }: SentDatum): TrainSequence {
  const { target_tokens, mask, temperatures, ...others } = loss_fn_inputs;
  const tokens = model_input.chunks.flatMap((chunk) => chunk.tokens);
  const targets = integersOf(target_tokens!);
  const whole = (values: Float32Array) => [0, ...values];
  return {
    ids: [...tokens, targets.at(-1)!],
    ...(mask !== undefined && { targets: whole(numbersOf(mask)) }),
    ...(temperatures !== undefined && { temperatures: [1, ...numbersOf(temperatures)] }),
    inputs: Object.fromEntries(
      Object.entries(others).map(([name, values]) => [name, whole(numbersOf(values))]),
    ),
  };
}

/** Token ids as they arrive. */
export function integersOf(tensor: Parameters<typeof numbersOf>[0]): readonly number[] {
  if (!("base64" in tensor)) return Array.from(numbersOf(tensor));
  const bytes = Uint8Array.from(Buffer.from(tensor.base64, "base64"));
  return Array.from(new Int32Array(bytes.buffer));
}

/** The effect of a server that divides by the sum of the weights. */
export function normalise(sequences: readonly TrainSequence[]): TrainSequence[] {
  const weights = sequences.map(({ inputs }) => Array.from(inputs.weights!));
  const total = weights.flat().reduce((sum, weight) => sum + weight, 0);
  return sequences.map((sequence, i) => ({
    ...sequence,
    inputs: { weights: weights[i]!.map((weight) => weight / total) },
  }));
}

/** The answer to a forward pass. */
export const scored = (results: readonly ForwardResult[]) => ({
  loss_fn_outputs: results.map(({ logprobs, entropies, values }) => ({
    logprobs: shifted(logprobs),
    ...(entropies && { entropies: shifted(entropies) }),
    ...(values && { values: shifted(values) }),
  })),
  metrics: {},
});

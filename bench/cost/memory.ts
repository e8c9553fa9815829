/** The memory of the PyTorch server on a GPU: bytes by what they are for. */
import type { ModelConfig } from "../../src/engine/weights/model-config.js";
import { parametersOf } from "./shape.js";
import { cachedNumbers } from "./work.js";

/** Numbers are computed in 16 bits; masters, gradients and moments have 32. */
const HALF = 2;
const WHOLE = 4;
const CUDA = 0.8 * 2 ** 30;

/** Bytes, and the tokens of a micro-batch. */
export interface Memory {
  readonly weights: number;
  readonly gradients: number;
  readonly moments: number;
  readonly reference: number;
  readonly activations: number;
  readonly cache: number;
  readonly batchTokens: number;
}

/** What a model takes; `cached` tokens are in its KV cache, `tokens` are learnt (default: more than a micro-batch). */
export function memoryOf(
  shape: ModelConfig,
  {
    cached = 0,
    tokens = Number.POSITIVE_INFINITY,
    batchTokens = batchTokensFor(shape),
  }: { readonly cached?: number; readonly tokens?: number; readonly batchTokens?: number },
): Memory {
  const parameters = parametersOf(shape);
  return {
    weights: (HALF + WHOLE) * parameters,
    gradients: WHOLE * parameters,
    moments: 2 * WHOLE * parameters,
    reference: HALF * parameters,
    activations: activationBytes(shape) * Math.min(tokens, batchTokens),
    cache: HALF * cachedNumbers(shape) * cached,
    batchTokens,
  };
}

/** The sum, with or without a copy of the weights as reference. */
export function totalOf(memory: Memory, { reference }: { readonly reference: boolean }): number {
  const { weights, gradients, moments, activations, cache } = memory;
  return weights + gradients + moments + activations + cache + (reference ? memory.reference : 0);
}

/** With what CUDA itself takes of a process (servers/torch/pawl_server/memory.py). */
export const withCuda = (bytes: number): number => bytes + CUDA;

/** What a layer keeps of each token for the backward pass; as in servers/torch/pawl_server/micro_batch.py. */
function activationBytes(shape: ModelConfig): number {
  const { layers, hiddenSize, mlpSize, heads, kvHeads, headSize } = shape;
  const attention = (2 * heads + 2 * kvHeads) * headSize;
  return HALF * layers * (3 * hiddenSize + attention + 3 * mlpSize);
}

/** The server's own choice (micro_batch.py): activations of at most 32 bytes per weight. */
function batchTokensFor(shape: ModelConfig): number {
  const tokens = Math.floor((32 * parametersOf(shape)) / activationBytes(shape));
  return Math.max(4096, Math.min(16_384, Math.floor(tokens / 1024) * 1024));
}

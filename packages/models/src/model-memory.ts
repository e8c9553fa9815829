/**
 * What a model needs in the embedded engine's memory, estimated from its sizes.
 *
 * The factors were fitted to SmolLM2-135M (30 layers, 49,152 tokens) in 32 bits. Training adapters took
 * 2.2 GB on short sequences and 3.6 GB with one of 1,024 tokens (estimated: 3.9 GB); sampling alone has a
 * copy of the weights in the graph that decodes (0.65 GB; twice that while it is made). Scoring texts of
 * 1,024 tokens took 1.2 GB, and 3.7 GB with Qwen2.5-Coder-0.5B (estimated, with what is fixed: 1.3 and 3.8).
 * Runs record what they took (`memory.mib`), which is what counts.
 */

import { totalmem } from "node:os";
import type { ModelConfig } from "./weights/model-config.js";

/** Which sampling graphs hold their weights; the others take them as inputs. */

/**
 * Models up to this size, in bytes, are compiled with their weights inside whenever the weights
 * change: products with stored weights are up to twice as fast, and training samples a lot between
 * updates.
 */
export const MAX_STORED_BYTES = 2 ** 28;
/**
 * Larger ones, up to this size, have them inside the decode graph only: to rearrange a weight for a
 * product takes about as long as the product of a few rows, and a copy in every graph would be too
 * much memory. A graph must stay below 2 GiB.
 */
export const MAX_STORED_DECODE_BYTES = 2 ** 30;

/** Upper bound of logits held at a time when learning, for large vocabularies. */
export const MAX_LOGITS = 2 ** 24;

/** Texts that are sampled together, their length, and that of a sequence to learn from. */
export const ASSUMED = { rows: 16, tokens: 1024, rank: 16 } as const;

/** Estimated bytes. */
export interface MemoryNeeds {
  readonly sample: number;
  readonly train: number;
  readonly lora: number;
  /** Of that, the projections once more, with the adapters merged into them. */
  readonly merged: number;
  /** To score texts beside a model that is trained, as a teacher does. */
  readonly score: number;
}

const FLOAT = 4;
/** ONNX Runtime, Node and the tokenizer. */
const FIXED = 0.3e9;

/** The memory that a model of this shape needs. */
export function memoryNeeds(config: ModelConfig, parameters: number): MemoryNeeds {
  const { layers, hiddenSize, mlpSize, heads, kvHeads, headSize, vocabularySize } = config;
  const tokens = Math.min(ASSUMED.tokens, config.maxContext);
  const weights = FLOAT * parameters;
  // What samples has them once more, in the graph that decodes.
  const stored = weights <= MAX_STORED_DECODE_BYTES ? weights : 0;
  const caches = FLOAT * ASSUMED.rows * tokens * layers * 2 * kvHeads * headSize;
  // What the backward pass needs of the forward pass, per token.
  const perLayer = 10 * hiddenSize + 4 * mlpSize + 0.6 * heads * tokens;
  const logits = Math.min(tokens * vocabularySize, MAX_LOGITS);
  const activations = FLOAT * (tokens * layers * perLayer + 5 * logits);
  const queries = heads * headSize;
  const keys = kvHeads * headSize;
  // Adapters on all seven projections: rank × (inputs + outputs) each.
  const projections = 4 * hiddenSize + 2 * queries + 2 * keys + 3 * (hiddenSize + mlpSize);
  const adapters = FLOAT * ASSUMED.rank * layers * projections;
  const merged = FLOAT * layers * hiddenSize * (2 * queries + 2 * keys + 3 * mlpSize);
  return {
    sample: FIXED + weights + stored + caches,
    // Weights, gradients, Adam's two moments, and a copy while they are exchanged.
    train: FIXED + 5 * weights + stored + activations,
    lora: FIXED + weights + merged + 4 * adapters + activations,
    merged,
    score: weights + 2.5 * FLOAT * tokens * vocabularySize,
  };
}

/**
 * What weights take, and gradients, both moments and the copy that is exchanged of what is trained: no
 * setting makes it less.
 */
export function leastMemory(parameters: number, trained: number): number {
  return FIXED + FLOAT * (parameters + 4 * trained);
}

/** The memory of this machine, or of the container that it is. */
export function memoryHere(): number {
  return Math.min(totalmem(), process.constrainedMemory() || Number.POSITIVE_INFINITY);
}

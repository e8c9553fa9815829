/** The shape of a decoder-only transformer. */
import { EngineError } from "@pawl/core/engine/engine.js";
import type { Architecture, SlidingWindow, Traits } from "./architectures.js";
import type { RopeScaling } from "./rope.js";

/** Everything that determines a model's tensors and arithmetic. */
export interface ModelConfig extends Traits {
  /**
   * Its name in config.json, for other programs; default: Llama's, or Qwen2's with a `qkvBias`. What
   * an architecture means is in the other fields.
   */
  readonly architecture?: Architecture;
  readonly vocabularySize: number;
  readonly hiddenSize: number;
  readonly layers: number;
  /** Query heads. */
  readonly heads: number;
  /** Key and value heads, each shared by `heads / kvHeads` query heads. */
  readonly kvHeads: number;
  readonly headSize: number;
  /** Width of the gated MLP. */
  readonly mlpSize: number;
  readonly maxContext: number;
  /** Base of the rotary position embedding; its pairs are (i, i + headSize / 2). */
  readonly ropeTheta: number;
  /** How its frequencies are stretched for long contexts; if undefined, they are not. */
  readonly ropeScaling?: RopeScaling;
  readonly normEps: number;
  /** The output projection is the embedding matrix. */
  readonly tiedEmbeddings: boolean;
  /** Attention scores are divided by its square root; default: the size of a head. */
  readonly queryScalar?: number;
  /** Layers without a rotary embedding; default: none. */
  readonly unrotatedLayers?: readonly number[];
  /** Layers that see only the last tokens; if undefined, there are none. */
  readonly slidingWindow?: SlidingWindow;
  /** Copied for other programs that read a checkpoint; the engine does not use them. */
  readonly bosTokenId?: number;
  readonly eosTokenIds?: readonly number[];
  readonly padTokenId?: number;
}

/** Whether a layer has a rotary embedding. */
export function isRotated({ unrotatedLayers }: ModelConfig, layer: number): boolean {
  return unrotatedLayers?.includes(layer) !== true;
}

/**
 * The tokens that a layer sees, if they are fewer than the model can read; undefined if it sees
 * everything.
 */
export function windowOf(
  { slidingWindow, maxContext }: ModelConfig,
  layer: number,
): number | undefined {
  if (slidingWindow === undefined || slidingWindow.size >= maxContext) return undefined;
  return slidingWindow.layers.includes(layer) ? slidingWindow.size : undefined;
}

/** The different windows of a model's layers; one of them may be undefined. */
export function windowsOf(config: ModelConfig): readonly (number | undefined)[] {
  const windows = Array.from({ length: config.layers }, (_, layer) => windowOf(config, layer));
  return [...new Set(windows)];
}

/** Rejects sizes that do not fit together; errors name `origin` as their source. */
export function checkModelConfig(config: ModelConfig, origin: string): void {
  if (config.heads % config.kvHeads !== 0)
    throw new EngineError(
      `${origin}: ${config.heads} attention heads cannot share ${config.kvHeads} key-value heads evenly; expected a divisor of ${config.heads}`,
    );
  if (config.headSize < 2 || config.headSize % 2 !== 0)
    throw new EngineError(
      `${origin}: heads of size ${config.headSize} cannot be rotated in pairs; expected an even size (head_dim, or hidden_size / num_attention_heads)`,
    );
}

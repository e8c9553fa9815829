/** The shape of a decoder-only transformer. */
import { EngineError } from "@pawl/core/engine/engine.js";
import { z } from "zod";
import type { RopeScaling } from "./rope.js";

/** Layers in which a token sees only the last tokens: their form in config.json. */
interface SlidingWindow {
  /** A token sees itself and the `size - 1` tokens before it. */
  readonly size: number;
  /** Which layers have it. */
  readonly layers: readonly number[];
  /** Base of their rotary embedding, if it is not that of the other layers. */
  readonly ropeTheta?: number;
}

/** Which layers of an architecture have a window, unless `layer_types` says so. */
type WindowRule =
  | "none"
  | "all layers"
  /** If `use_sliding_window` is set: from `max_window_layers` on. */
  | "last layers"
  /** If `use_sliding_window` is set: those without a rotary embedding. */
  | "unrotated layers"
  /** With n from `sliding_window_pattern`. */
  | "all but every nth layer";

const FULL = "full_attention";
const SLIDING = "sliding_attention";

/** The fields of config.json that say so, with the defaults of Hugging Face's configurations. */
export const windowFields = {
  sliding_window: z.int().positive().nullish(),
  use_sliding_window: z.boolean().default(false),
  max_window_layers: z.int().nonnegative().default(28),
  sliding_window_pattern: z.int().positive().default(6),
  layer_types: z.array(z.string()).nullish(),
};

type Fields = z.infer<z.ZodObject<typeof windowFields>>;

/** The window that these fields describe, or what is wrong with them. */
export function parseSlidingWindow(
  fields: Fields,
  rule: WindowRule,
  layers: number,
  unrotated: readonly number[],
): { readonly window: SlidingWindow | undefined } | { readonly problem: string } {
  const optional = rule === "last layers" || rule === "unrotated layers";
  if (!optional && fields.use_sliding_window)
    return { problem: "use_sliding_window in this architecture" };
  const used = rule !== "none" && (!optional || fields.use_sliding_window);
  const { sliding_window: given = rule === "unrotated layers" ? null : 4096 } = fields;
  const size = used ? given : null;
  const slides = (layer: number) => {
    if (rule === "last layers") return layer >= fields.max_window_layers;
    if (rule === "all but every nth layer") return (layer + 1) % fields.sliding_window_pattern > 0;
    return rule === "all layers" || unrotated.includes(layer);
  };
  const usual = Array.from({ length: layers }, (_, layer) =>
    size !== null && slides(layer) ? SLIDING : FULL,
  );
  const kinds = fields.layer_types ?? usual;
  const unknown = kinds.find((kind) => kind !== FULL && kind !== SLIDING);
  if (unknown !== undefined)
    return { problem: `layer_types with "${unknown}"; only "${FULL}" and "${SLIDING}" are` };
  if (kinds.length !== layers)
    return { problem: `layer_types for ${kinds.length} layers; the model has ${layers}` };
  const sliding = kinds.flatMap((kind, layer) => (kind === SLIDING ? [layer] : []));
  if (sliding.length > 0 && size === null)
    return { problem: `layer_types with "${SLIDING}" in a model without a sliding window` };
  // transformers gives every layer the window, whatever their types are.
  if (rule === "all layers" && `${kinds}` !== `${usual}`)
    return { problem: "layer_types that differ from layer to layer in this architecture" };
  return { window: size === null || sliding.length === 0 ? undefined : { size, layers: sliding } };
}

/** A window as config.json has it. */
export function formatSlidingWindow(
  window: SlidingWindow | undefined,
  rule: WindowRule,
  layers: number,
): Readonly<Record<string, unknown>> {
  if (rule === "all layers") return { sliding_window: window?.size ?? null };
  const layer_types = Array.from({ length: layers }, (_, layer) =>
    window?.layers.includes(layer) ? SLIDING : FULL,
  );
  if (rule === "all but every nth layer")
    return {
      layer_types,
      ...(window && { sliding_window: window.size, rope_local_base_freq: window.ropeTheta }),
    };
  if (window === undefined) return {};
  return {
    use_sliding_window: true,
    sliding_window: window.size,
    ...(rule === "last layers" && { max_window_layers: window.layers[0] }),
    layer_types,
  };
}

/** The arithmetic that an architecture's name stands for. */
interface Traits {
  /** Query, key and value projections have a bias. */
  readonly qkvBias: boolean;
  /** Queries and keys have a norm over each head, before they are rotated. */
  readonly qkNorms?: boolean;
  /** The factor of a norm is one more than its weight. */
  readonly normsPlusOne?: boolean;
  /** What attention and MLP add to the residual stream is normed first. */
  readonly outputNorms?: boolean;
  /** Embeddings are multiplied by √hiddenSize. */
  readonly scaledEmbeddings?: boolean;
  /** The activation of the MLP's gate is GELU, approximated by tanh, and not SiLU. */
  readonly gelu?: boolean;
}

/** An architecture, and its own defaults for what config.json may leave out. */
export interface Meaning {
  readonly modelType: string;
  readonly traits: Traits;
  /** Which layers have a sliding window. */
  readonly windows: WindowRule;
  /** Layers with a window have a rotary embedding of their own, by default with this base. */
  readonly windowTheta?: number;
  /** It may have layers without a rotary embedding. */
  readonly unrotated?: boolean;
  /** Scores are scaled by `query_pre_attn_scalar`, by default this, and not by the heads' size. */
  readonly queryScalar?: number;
  readonly headSize?: number;
  readonly ropeTheta?: number;
  readonly tiedEmbeddings?: boolean;
}

export const ARCHITECTURES = {
  LlamaForCausalLM: { modelType: "llama", traits: { qkvBias: false }, windows: "none" },
  Qwen2ForCausalLM: { modelType: "qwen2", traits: { qkvBias: true }, windows: "last layers" },
  Qwen3ForCausalLM: {
    modelType: "qwen3",
    traits: { qkvBias: false, qkNorms: true },
    windows: "last layers",
    headSize: 128,
  },
  MistralForCausalLM: { modelType: "mistral", traits: { qkvBias: false }, windows: "all layers" },
  SmolLM3ForCausalLM: {
    modelType: "smollm3",
    traits: { qkvBias: false },
    windows: "unrotated layers",
    unrotated: true,
    ropeTheta: 2_000_000,
    tiedEmbeddings: true,
  },
  Gemma3ForCausalLM: {
    modelType: "gemma3_text",
    traits: {
      qkvBias: false,
      qkNorms: true,
      normsPlusOne: true,
      outputNorms: true,
      scaledEmbeddings: true,
      gelu: true,
    },
    windows: "all but every nth layer",
    windowTheta: 10_000,
    queryScalar: 256,
    headSize: 256,
    ropeTheta: 1_000_000,
    tiedEmbeddings: true,
  },
} satisfies Readonly<Record<string, Meaning>>;

export type Architecture = keyof typeof ARCHITECTURES;

export const SUPPORTED = Object.keys(ARCHITECTURES) as readonly Architecture[];

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

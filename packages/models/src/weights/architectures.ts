/** The supported architectures, by their names in config.json: what they change in a Llama. */
import type { WindowRule } from "./sliding-window.js";

/** The arithmetic that an architecture's name stands for. */
export interface Traits {
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

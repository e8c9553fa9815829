/**
 * From the metadata of a GGUF file to the config.json of the same model in Hugging Face's layout.
 *
 * llama.cpp's architectures have fixed parts that its metadata does not mention; those are written
 * out here. Metadata of the architecture that is not known here is refused, because it may change
 * the model's arithmetic. Whether an engine supports the result is for the engine to say.
 */
import type { GgufFile } from "./gguf-file.js";
import { type Metadata, metadataOf } from "./gguf-metadata.js";

/**
 * Llama 3's rope scaling, which llama.cpp stores as one factor per frequency instead of by its
 * settings. The settings are recovered and checked: the factors they give must be those in the file.
 */

/** Llama 3's settings other than the factor are the same in all its models. */
const LOW = 1;
const HIGH = 4;
const ORIGINAL_CONTEXT = 8192;

/** The factor by which each frequency is divided. */
export function llama3Factors(
  factor: number,
  { theta, headSize }: { readonly theta: number; readonly headSize: number },
): readonly number[] {
  return Array.from({ length: headSize / 2 }, (_, i) => {
    const wavelength = 2 * Math.PI * theta ** ((2 * i) / headSize);
    if (wavelength < ORIGINAL_CONTEXT / HIGH) return 1;
    if (wavelength > ORIGINAL_CONTEXT / LOW) return factor;
    const smooth = (ORIGINAL_CONTEXT / wavelength - LOW) / (HIGH - LOW);
    return 1 / ((1 - smooth) / factor + smooth);
  });
}

/** The rope scaling of config.json that these factors stand for; undefined if they are not Llama 3's. */
export function llama3Scaling(
  factors: ArrayLike<number>,
  rope: { readonly theta: number; readonly headSize: number },
): Readonly<Record<string, unknown>> | undefined {
  const factor = Math.max(...Array.from(factors));
  const expected = llama3Factors(factor, rope);
  const same =
    factors.length === expected.length &&
    expected.every((one, i) => Math.abs(one / factors[i]! - 1) < 1e-4);
  if (!same) return undefined;
  return {
    rope_type: "llama3",
    factor,
    low_freq_factor: LOW,
    high_freq_factor: HIGH,
    original_max_position_embeddings: ORIGINAL_CONTEXT,
  };
}

type Json = Readonly<Record<string, unknown>>;

/** How llama.cpp treats an architecture. */
interface Architecture {
  /** Hugging Face's class and type. */
  readonly name: string;
  readonly type: string;
  /** Rows of the query and key projections are stored in the order of interleaved rotary pairs. */
  readonly permuted?: true;
  /** Norm weights are stored with 1 added. */
  readonly normsPlusOne?: true;
  /** Fields of config.json that only this architecture has. */
  readonly more?: (metadata: Metadata, sizes: Sizes) => Json;
}

interface Sizes {
  readonly layers: number;
  readonly heads: number;
  readonly headSize: number;
}

/** The architectures that are read, by llama.cpp's name for them. Mistral is stored as llama. */
export const GGUF_ARCHITECTURES: Readonly<Record<string, Architecture>> = {
  llama: { name: "LlamaForCausalLM", type: "llama", permuted: true },
  qwen2: { name: "Qwen2ForCausalLM", type: "qwen2" },
  qwen3: { name: "Qwen3ForCausalLM", type: "qwen3" },
  smollm3: {
    name: "SmolLM3ForCausalLM",
    type: "smollm3",
    permuted: true,
    // Every fourth layer has no rotary embedding.
    more: (_, { layers }) => ({
      no_rope_layer_interval: 4,
      no_rope_layers: Array.from({ length: layers }, (_one, i) => ((i + 1) % 4 === 0 ? 0 : 1)),
      use_sliding_window: false,
    }),
  },
  gemma3: {
    name: "Gemma3ForCausalLM",
    type: "gemma3_text",
    normsPlusOne: true,
    more: (metadata, { layers, headSize, heads }) => ({
      hidden_act: undefined,
      hidden_activation: "gelu_pytorch_tanh",
      // The 27B model alone divides by the width of a head as if the heads shared the model's width.
      query_pre_attn_scalar:
        layers === 62 ? metadata.number("gemma3.embedding_length") / heads : headSize,
      sliding_window: metadata.number("gemma3.attention.sliding_window"),
      rope_local_base_freq: metadata.numberIf("gemma3.rope.freq_base_swa") ?? 10_000,
      layer_types: Array.from({ length: layers }, (_, i) =>
        (i + 1) % 6 === 0 ? "full_attention" : "sliding_attention",
      ),
      attn_logit_softcapping: null,
      final_logit_softcapping: metadata.numberIf("gemma3.final_logit_softcapping") ?? null,
    }),
  },
};

/** The architecture of a file; one that is not read is refused by name. */
export function ggufArchitecture(gguf: GgufFile): Architecture & { readonly key: string } {
  const metadata = metadataOf(gguf);
  const key = metadata.text("general.architecture");
  const architecture = Object.hasOwn(GGUF_ARCHITECTURES, key) && GGUF_ARCHITECTURES[key];
  if (!architecture)
    throw metadata.error(
      `architecture ${JSON.stringify(key.slice(0, 60))} is not supported in GGUF files; supported: ${Object.keys(GGUF_ARCHITECTURES).join(", ")}`,
    );
  return { ...architecture, key };
}

/** Keys that say nothing about the arithmetic. */
const HARMLESS = /\.(vocab_size|tensor_data_layout|rope\.scaling\.finetuned)$/;

/** The content of config.json; `factors` are those of the tensor rope_freqs.weight, if there is one. */
export function ggufConfig(gguf: GgufFile, factors: ArrayLike<number> | undefined): Json {
  const metadata = metadataOf(gguf);
  const { key, name, type, more } = ggufArchitecture(gguf);
  const of = (field: string) => `${key}.${field}`;
  const experts = metadata.numberIf(of("expert_count")) ?? 0;
  if (experts > 0)
    throw metadata.error(`the model is a mixture of ${experts} experts, which is not supported`);
  const width = metadata.number(of("embedding_length"));
  const layers = metadata.number(of("block_count"));
  const heads = need(metadata, of("attention.head_count"));
  const headSize = headSizeOf(metadata, key, width / heads);
  const theta = metadata.numberIf(of("rope.freq_base")) ?? 10_000;
  const config = {
    architectures: [name],
    model_type: type,
    vocab_size: vocabularyOf(gguf, metadata),
    hidden_size: width,
    num_hidden_layers: layers,
    num_attention_heads: heads,
    num_key_value_heads: metadata.uniform(of("attention.head_count_kv")) ?? heads,
    head_dim: headSize,
    intermediate_size: need(metadata, of("feed_forward_length")),
    max_position_embeddings: metadata.number(of("context_length")),
    rope_theta: theta,
    ...ropeScaling(metadata, key, { theta, headSize }, factors),
    rms_norm_eps: shortest(metadata.number(of("attention.layer_norm_rms_epsilon"))),
    hidden_act: "silu",
    tie_word_embeddings: !gguf.tensors.has("output.weight"),
    bos_token_id: metadata.numberIf("tokenizer.ggml.bos_token_id"),
    eos_token_id: metadata.numberIf("tokenizer.ggml.eos_token_id"),
    pad_token_id: metadata.numberIf("tokenizer.ggml.padding_token_id"),
    ...more?.(metadata, { layers, heads, headSize }),
    torch_dtype: "float32",
  };
  const unknown = metadata.unread(`${key}.`).filter((one) => !HARMLESS.test(one));
  if (unknown.length > 0)
    throw metadata.error(
      `metadata ${unknown.slice(0, 8).join(", ")} is not known, and may change what the model computes; it is not supported`,
    );
  return config;
}

function need(metadata: Metadata, key: string): number {
  const value = metadata.uniform(key);
  if (value === undefined) throw metadata.error(`metadata ${key} is missing`);
  return value;
}

function headSizeOf(metadata: Metadata, key: string, share: number): number {
  const keys = metadata.numberIf(`${key}.attention.key_length`) ?? share;
  const values = metadata.numberIf(`${key}.attention.value_length`) ?? keys;
  const rotated = metadata.numberIf(`${key}.rope.dimension_count`) ?? keys;
  if (values !== keys || rotated !== keys)
    throw metadata.error(
      `heads have keys of ${keys} numbers, values of ${values} and ${rotated} rotated ones; expected the same number of each`,
    );
  return keys;
}

function vocabularyOf({ tensors }: GgufFile, metadata: Metadata): number {
  const rows = tensors.get("token_embd.weight")?.shape[0];
  if (rows === undefined) throw metadata.error("tensor token_embd.weight is missing");
  return rows;
}

function ropeScaling(
  metadata: Metadata,
  key: string,
  rope: { readonly theta: number; readonly headSize: number },
  factors: ArrayLike<number> | undefined,
): Json {
  const of = (field: string) => `${key}.rope.scaling.${field}`;
  const type = metadata.textIf(of("type")) ?? "none";
  const factor = metadata.numberIf(of("factor")) ?? metadata.numberIf(`${key}.rope.scale_linear`);
  if (factors !== undefined) {
    if (type !== "none")
      throw metadata.error(`rope_freqs.weight and rope scaling ${type} together are not supported`);
    const scaling = llama3Scaling(factors, rope);
    if (scaling === undefined)
      throw metadata.error(
        "the factors in rope_freqs.weight are not those of Llama 3; not supported",
      );
    return { rope_scaling: scaling };
  }
  if (type === "none" && (factor === undefined || factor === 1)) return {};
  if (factor === undefined) throw metadata.error(`metadata ${of("factor")} is missing`);
  if (type === "linear" || type === "none")
    return { rope_scaling: { rope_type: "linear", factor } };
  if (type !== "yarn") throw metadata.error(`rope scaling ${type} is not supported`);
  return {
    rope_scaling: {
      rope_type: "yarn",
      factor,
      original_max_position_embeddings: metadata.numberIf(of("original_context_length")),
    },
  };
}

/** The shortest decimal that is the same 32-bit float: 1e-5 and not 0.000009999999747378752. */
function shortest(value: number): number {
  return Number(value.toPrecision(7));
}

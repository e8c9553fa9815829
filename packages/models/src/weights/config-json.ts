/** The shape of a model in its checkpoint's config.json. */

import { EngineError } from "@pawl/core/engine/engine.js";
import { z } from "zod";
import {
  ARCHITECTURES,
  type Architecture,
  checkModelConfig,
  formatSlidingWindow,
  isRotated,
  type Meaning,
  type ModelConfig,
  parseSlidingWindow,
  SUPPORTED,
  windowFields,
} from "./model-config.js";
import { formatRopeScaling, parseRopeScaling, ropeFields } from "./rope.js";

/** How Gemma names its activation. */
const GELU = "gelu_pytorch_tanh";
// Bounded, so that a nonsensical file is rejected before anything is allocated for it.
const positive = z
  .int()
  .positive()
  .max(2 ** 31);
const layerCount = z.int().positive().max(10_000);
const tokenId = z.int().nonnegative();
const byLayerType = z.object({
  full_attention: ropeFields.nullish(),
  sliding_attention: ropeFields.nullish(),
});

/** The fields of config.json that matter; defaults are those of Hugging Face's own configurations. */
const fileSchema = z.looseObject({
  architectures: z.array(z.string()).min(1),
  vocab_size: positive,
  hidden_size: positive,
  num_hidden_layers: layerCount,
  num_attention_heads: positive,
  num_key_value_heads: positive.nullish(),
  head_dim: positive.nullish(),
  intermediate_size: positive,
  max_position_embeddings: positive,
  rope_theta: z.number().positive().optional(),
  rope_local_base_freq: z.number().positive().optional(),
  rope_scaling: ropeFields.nullish(),
  rope_parameters: ropeFields.nullish(),
  partial_rotary_factor: z.number().nullish(),
  original_max_position_embeddings: positive.optional(),
  rms_norm_eps: z.number().nonnegative().default(1e-6),
  hidden_act: z.string().default("silu"),
  hidden_activation: z.string().default(GELU),
  query_pre_attn_scalar: z.number().positive().optional(),
  attn_logit_softcapping: z.number().nullish(),
  final_logit_softcapping: z.number().nullish(),
  use_bidirectional_attention: z.boolean().nullish(),
  tie_word_embeddings: z.boolean().optional(),
  attention_bias: z.boolean().default(false),
  mlp_bias: z.boolean().default(false),
  no_rope_layers: z.array(z.int().min(0).max(1)).nullish(),
  no_rope_layer_interval: positive.default(4),
  ...windowFields,
  quantization_config: z.unknown().optional(),
  bos_token_id: tokenId.nullish(),
  eos_token_id: z.union([tokenId, z.array(tokenId)]).nullish(),
  pad_token_id: z.int().nullish(),
});

/** The model that the parsed content of a config.json describes; `file` is named in errors. */
export function parseModelConfig(json: unknown, file: string): ModelConfig {
  const architecture = architectureOf(json, file);
  const parsed = fileSchema.safeParse(json);
  if (!parsed.success) throw new EngineError(`${file}: ${describe(parsed.error)}`);
  const fields = parsed.data;
  const meaning: Meaning = ARCHITECTURES[architecture];
  refuseUnsupported(fields, meaning, file);
  const { theta, scaling, windowTheta } = ropeOf(fields, meaning, file);
  const layers = fields.num_hidden_layers;
  const unrotated = meaning.unrotated ? unrotatedOf(fields, file) : [];
  const windows = parseSlidingWindow(fields, meaning.windows, layers, unrotated);
  if ("problem" in windows) throw new EngineError(`${file}: not supported: ${windows.problem}`);
  const perHead = Math.floor(fields.hidden_size / fields.num_attention_heads);
  const { bos_token_id: bos, eos_token_id: eos, pad_token_id: pad } = fields;
  const config: ModelConfig = {
    architecture,
    vocabularySize: fields.vocab_size,
    hiddenSize: fields.hidden_size,
    layers,
    heads: fields.num_attention_heads,
    kvHeads: fields.num_key_value_heads ?? fields.num_attention_heads,
    headSize: fields.head_dim ?? meaning.headSize ?? perHead,
    mlpSize: fields.intermediate_size,
    maxContext: fields.max_position_embeddings,
    ropeTheta: theta ?? meaning.ropeTheta ?? 10_000,
    ...(scaling === undefined ? {} : { ropeScaling: scaling }),
    normEps: fields.rms_norm_eps,
    tiedEmbeddings: fields.tie_word_embeddings ?? meaning.tiedEmbeddings ?? false,
    ...meaning.traits,
    ...(meaning.queryScalar !== undefined && {
      queryScalar: fields.query_pre_attn_scalar ?? meaning.queryScalar,
    }),
    ...(unrotated.length > 0 && { unrotatedLayers: unrotated }),
    ...(windows.window && {
      slidingWindow: {
        ...windows.window,
        ...(windowTheta !== undefined && { ropeTheta: windowTheta }),
      },
    }),
    ...(bos == null ? {} : { bosTokenId: bos }),
    ...(eos == null ? {} : { eosTokenIds: typeof eos === "number" ? [eos] : eos }),
    ...(pad == null ? {} : { padTokenId: pad }),
  };
  checkModelConfig(config, file);
  return config;
}

/** The content of config.json for a model, as Hugging Face's transformers reads it. */
export function formatModelConfig(config: ModelConfig): Readonly<Record<string, unknown>> {
  const architecture =
    config.architecture ?? (config.qkvBias ? "Qwen2ForCausalLM" : "LlamaForCausalLM");
  const meaning: Meaning = ARCHITECTURES[architecture];
  return {
    architectures: [architecture],
    model_type: meaning.modelType,
    vocab_size: config.vocabularySize,
    hidden_size: config.hiddenSize,
    num_hidden_layers: config.layers,
    num_attention_heads: config.heads,
    num_key_value_heads: config.kvHeads,
    head_dim: config.headSize,
    intermediate_size: config.mlpSize,
    max_position_embeddings: config.maxContext,
    rope_theta: config.ropeTheta,
    ...(config.ropeScaling === undefined
      ? {}
      : { rope_scaling: formatRopeScaling(config.ropeScaling) }),
    rms_norm_eps: config.normEps,
    ...(config.gelu ? { hidden_activation: GELU } : { hidden_act: "silu" }),
    ...(config.queryScalar !== undefined && { query_pre_attn_scalar: config.queryScalar }),
    tie_word_embeddings: config.tiedEmbeddings,
    ...(meaning.unrotated && {
      no_rope_layers: Array.from({ length: config.layers }, (_, layer) =>
        isRotated(config, layer) ? 1 : 0,
      ),
    }),
    ...formatSlidingWindow(config.slidingWindow, meaning.windows, config.layers),
    ...(config.bosTokenId === undefined ? {} : { bos_token_id: config.bosTokenId }),
    ...(config.eosTokenIds === undefined ? {} : { eos_token_id: config.eosTokenIds }),
    // Written even if there is none: some architectures have a default that may not exist here.
    pad_token_id: config.padTokenId ?? null,
  };
}

/** How many tokens a model reads, also one of an architecture that only a server computes. */
export function contextOf(json: unknown, file: string): number {
  const size = z.object({ max_position_embeddings: z.int().min(1) });
  const found = size.or(z.object({ text_config: size })).safeParse(json);
  if (!found.success) throw new EngineError(`${file}: no max_position_embeddings`);
  const fields = "text_config" in found.data ? found.data.text_config : found.data;
  return fields.max_position_embeddings;
}

function architectureOf(json: unknown, file: string): Architecture {
  const supported = `supported: ${SUPPORTED.join(", ")}`;
  const named = z.object({ architectures: z.array(z.string()).min(1) }).safeParse(json);
  if (!named.success)
    throw new EngineError(
      `${file}: no "architectures", so the kind of model is unknown; ${supported}`,
    );
  const { architectures } = named.data;
  const found = SUPPORTED.find((name) => architectures.includes(name));
  if (found === undefined)
    throw new EngineError(
      `${file}: architecture ${architectures.join(", ")} is not supported; ${supported}`,
    );
  return found;
}

/**
 * The rotary embedding; if both spellings are there, transformers reads the older one. The newer
 * one is by type of layer, if layers with a window have a rotary embedding of their own.
 */
function ropeOf(fields: z.infer<typeof fileSchema>, meaning: Meaning, file: string) {
  const refuse = (problem: string) => new EngineError(`${file}: not supported: ${problem}`);
  const { rope_scaling: older, rope_parameters: newer } = fields;
  const byType = byLayerType.safeParse(newer ?? {}).data ?? {};
  const isByType = Object.keys(byType).length > 0;
  const hasNewer = newer != null && Object.keys(newer).length > 0;
  if (hasNewer && isByType !== (meaning.windowTheta !== undefined))
    throw refuse(`rope_parameters ${isByType ? "" : "not "}by type of layer in this architecture`);
  const { full_attention: full, sliding_attention: sliding } = byType;
  const hasOlder = older != null && Object.keys(older).length > 0;
  const given = hasOlder ? older : ((isByType ? full : newer) ?? {});
  const parsed = parseRopeScaling(
    { partial_rotary_factor: fields.partial_rotary_factor, ...given },
    {
      maxContext: fields.max_position_embeddings,
      originalContext: fields.original_max_position_embeddings,
    },
  );
  if ("problem" in parsed) throw refuse(parsed.problem);
  const slidingType = sliding?.rope_type ?? sliding?.type ?? "default";
  if (slidingType !== "default")
    throw refuse(`rope_parameters of type "${slidingType}" in layers with a sliding window`);
  return {
    theta: given.rope_theta ?? full?.rope_theta ?? fields.rope_theta,
    scaling: parsed.scaling,
    windowTheta:
      meaning.windowTheta &&
      (sliding?.rope_theta ?? fields.rope_local_base_freq ?? meaning.windowTheta),
  };
}

/** The layers without a rotary embedding: those with a zero in `no_rope_layers`, or every nth. */
function unrotatedOf(fields: z.infer<typeof fileSchema>, file: string): readonly number[] {
  const { num_hidden_layers: layers, no_rope_layers: marks } = fields;
  if (marks != null && marks.length < layers)
    throw new EngineError(
      `${file}: no_rope_layers has ${marks.length} entries; expected one for each of ${layers} layers`,
    );
  return Array.from({ length: layers }, (_, layer) => layer).filter((layer) =>
    marks == null ? (layer + 1) % fields.no_rope_layer_interval === 0 : marks[layer] === 0,
  );
}

function refuseUnsupported(
  fields: z.infer<typeof fileSchema>,
  { traits }: Meaning,
  file: string,
): void {
  const { hidden_act: act, hidden_activation: activation } = fields;
  const problems: readonly (readonly [boolean, string])[] = [
    [!traits.gelu && act !== "silu", `hidden_act "${act}"; only "silu" is`],
    [
      traits.gelu === true && activation !== GELU,
      `hidden_activation "${activation}"; only "${GELU}" is`,
    ],
    [fields.attn_logit_softcapping != null, "attn_logit_softcapping"],
    [fields.final_logit_softcapping != null, "final_logit_softcapping"],
    [fields.use_bidirectional_attention === true, "use_bidirectional_attention"],
    [
      !traits.qkvBias && fields.attention_bias,
      "attention_bias, which gives the output projection a bias too",
    ],
    [fields.mlp_bias, "mlp_bias"],
    [
      fields.quantization_config != null,
      "quantization_config; only weights in F32, F16 or BF16 are",
    ],
  ];
  for (const [present, what] of problems)
    if (present) throw new EngineError(`${file}: not supported: ${what}`);
}

function describe(error: z.ZodError): string {
  return error.issues.map((issue) => `${issue.path.join(".")}: ${issue.message}`).join("; ");
}

/** The tensors of a model by their names in Hugging Face checkpoints, with their shapes. */
import { EngineError } from "@pawl/core/engine/engine.js";
import type { ModelConfig } from "./model-config.js";

/** A tensor of a model's checkpoint. */
export interface TensorSpec {
  readonly name: string;
  /** Linear layers are [outputs, inputs]. */
  readonly shape: readonly number[];
  /** A checkpoint may lack it. */
  readonly optional?: true;
}

/** The name of our value head, which no other program writes: [1, hidden size]. */
export const VALUE_HEAD = "value_head.weight";
export const EMBEDDING = "model.embed_tokens.weight";
export const FINAL_NORM = "model.norm.weight";
export const OUTPUT_HEAD = "lm_head.weight";

/** The tensor names of one layer; the norm before the MLP has another one if there are `outputNorms`. */
export function layerNames(layer: number, { outputNorms }: Pick<ModelConfig, "outputNorms"> = {}) {
  const prefix = `model.layers.${layer}`;
  const afterAttention = `${prefix}.post_attention_layernorm.weight`;
  return {
    attentionNorm: `${prefix}.input_layernorm.weight`,
    query: `${prefix}.self_attn.q_proj.weight`,
    key: `${prefix}.self_attn.k_proj.weight`,
    value: `${prefix}.self_attn.v_proj.weight`,
    queryBias: `${prefix}.self_attn.q_proj.bias`,
    keyBias: `${prefix}.self_attn.k_proj.bias`,
    valueBias: `${prefix}.self_attn.v_proj.bias`,
    queryNorm: `${prefix}.self_attn.q_norm.weight`,
    keyNorm: `${prefix}.self_attn.k_norm.weight`,
    attentionOutput: `${prefix}.self_attn.o_proj.weight`,
    attentionOutputNorm: afterAttention,
    mlpNorm: outputNorms ? `${prefix}.pre_feedforward_layernorm.weight` : afterAttention,
    mlpOutputNorm: `${prefix}.post_feedforward_layernorm.weight`,
    gate: `${prefix}.mlp.gate_proj.weight`,
    up: `${prefix}.mlp.up_proj.weight`,
    down: `${prefix}.mlp.down_proj.weight`,
  } as const;
}

/** All tensors of a model, in the order the model uses them. */
export function tensorSpecs(config: ModelConfig): readonly TensorSpec[] {
  const { hiddenSize, mlpSize, vocabularySize } = config;
  const queries = config.heads * config.headSize;
  const keys = config.kvHeads * config.headSize;
  const layers = Array.from({ length: config.layers }, (_, layer): TensorSpec[] => {
    const names = layerNames(layer, config);
    return [
      { name: names.attentionNorm, shape: [hiddenSize] },
      { name: names.query, shape: [queries, hiddenSize] },
      { name: names.key, shape: [keys, hiddenSize] },
      { name: names.value, shape: [keys, hiddenSize] },
      ...(config.qkvBias
        ? [
            { name: names.queryBias, shape: [queries] },
            { name: names.keyBias, shape: [keys] },
            { name: names.valueBias, shape: [keys] },
          ]
        : []),
      ...(config.qkNorms
        ? [
            { name: names.queryNorm, shape: [config.headSize] },
            { name: names.keyNorm, shape: [config.headSize] },
          ]
        : []),
      { name: names.attentionOutput, shape: [hiddenSize, queries] },
      ...(config.outputNorms ? [{ name: names.attentionOutputNorm, shape: [hiddenSize] }] : []),
      { name: names.mlpNorm, shape: [hiddenSize] },
      { name: names.gate, shape: [mlpSize, hiddenSize] },
      { name: names.up, shape: [mlpSize, hiddenSize] },
      { name: names.down, shape: [hiddenSize, mlpSize] },
      ...(config.outputNorms ? [{ name: names.mlpOutputNorm, shape: [hiddenSize] }] : []),
    ];
  });
  return [
    { name: EMBEDDING, shape: [vocabularySize, hiddenSize] },
    ...layers.flat(),
    { name: FINAL_NORM, shape: [hiddenSize] },
    ...(config.tiedEmbeddings ? [] : [{ name: OUTPUT_HEAD, shape: [vocabularySize, hiddenSize] }]),
    { name: VALUE_HEAD, shape: [1, hiddenSize], optional: true },
  ];
}

/** What is known of a tensor without reading it. */
export interface TensorHeader {
  readonly dtype: string;
  readonly shape: readonly number[];
}

const MAX_PROBLEMS = 8;

/** Rejects tensors that are not those of the model, with what was expected and found for each. */
export function checkTensors(
  config: ModelConfig,
  found: ReadonlyMap<string, TensorHeader>,
  origin: string,
): void {
  const specs = tensorSpecs(config);
  const known = new Set(specs.map((spec) => spec.name));
  const problems = specs.flatMap((spec): string[] => {
    const tensor = found.get(spec.name);
    const expected = `expected ${showShape(spec.shape)}`;
    if (tensor === undefined)
      return spec.optional ? [] : [`tensor ${spec.name} is missing; ${expected}`];
    if (!isFloat(tensor.dtype))
      return [`tensor ${spec.name} has dtype ${tensor.dtype}; expected F32, F16 or BF16`];
    return showShape(tensor.shape) === showShape(spec.shape)
      ? []
      : [`tensor ${spec.name} has shape ${showShape(tensor.shape)}; ${expected}`];
  });
  for (const [name, tensor] of found)
    if (!known.has(name) && !isRedundant(name, config))
      problems.push(`tensor ${name} ${showShape(tensor.shape)} is unexpected`);
  if (problems.length === 0) return;
  const shown = problems.slice(0, MAX_PROBLEMS);
  if (problems.length > shown.length)
    shown.push(`and ${problems.length - shown.length} more such problems`);
  throw new EngineError(
    `${origin}: the weights do not fit the model in config.json: ${shown.join("; ")}. Fetch or copy both again, from one model.`,
  );
}

/** Tensors that other programs write although they are redundant. */
function isRedundant(name: string, config: ModelConfig): boolean {
  return (config.tiedEmbeddings && name === OUTPUT_HEAD) || name.endsWith(".rotary_emb.inv_freq");
}

function isFloat(dtype: string): boolean {
  return dtype === "F32" || dtype === "F16" || dtype === "BF16";
}

function showShape(shape: readonly number[]): string {
  return `[${shape.join(", ")}]`;
}

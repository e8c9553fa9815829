/** The tensors of a GGUF file as those of a Hugging Face checkpoint: names, order of rows, offsets. */
import { EngineError } from "@pawl/core/engine/engine.js";
import type { ModelConfig } from "../weights/model-config.js";
import { tensorSpecs } from "../weights/tensor-names.js";
import { ggufArchitecture } from "./gguf-config.js";
import { type GgufFile, readGgufTensor } from "./gguf-file.js";

/** Names inside a layer: Hugging Face's, and llama.cpp's. */
const IN_LAYER: Readonly<Record<string, string>> = {
  input_layernorm: "attn_norm",
  "self_attn.q_proj": "attn_q",
  "self_attn.k_proj": "attn_k",
  "self_attn.v_proj": "attn_v",
  "self_attn.o_proj": "attn_output",
  "self_attn.q_norm": "attn_q_norm",
  "self_attn.k_norm": "attn_k_norm",
  post_attention_layernorm: "ffn_norm",
  "mlp.gate_proj": "ffn_gate",
  "mlp.up_proj": "ffn_up",
  "mlp.down_proj": "ffn_down",
};
/** Gemma 3 has norms before and after the attention and the MLP. */
const GEMMA3_IN_LAYER: Readonly<Record<string, string>> = {
  ...IN_LAYER,
  post_attention_layernorm: "post_attention_norm",
  pre_feedforward_layernorm: "ffn_norm",
  post_feedforward_layernorm: "post_ffw_norm",
};
const OUTSIDE: Readonly<Record<string, string>> = {
  "model.embed_tokens": "token_embd",
  "model.norm": "output_norm",
  lm_head: "output",
};
/** Read for the configuration, not as weights. */
export const ROPE_FACTORS = "rope_freqs.weight";

/** A tensor of the checkpoint, and how to get its numbers. */
export interface ConvertedTensor {
  readonly name: string;
  readonly shape: readonly number[];
  read(): Promise<Float32Array>;
}

/** The tensors of the model, in its order; tensors that are missing or left over are an error. */
export function convertTensors(gguf: GgufFile, config: ModelConfig): readonly ConvertedTensor[] {
  const architecture = ggufArchitecture(gguf);
  const inLayer = architecture.key === "gemma3" ? GEMMA3_IN_LAYER : IN_LAYER;
  const used = new Set<string>([ROPE_FACTORS]);
  const converted = tensorSpecs(config).flatMap(({ name, shape, optional }) => {
    const there = ggufName(name, inLayer);
    const tensor = there === undefined ? undefined : gguf.tensors.get(there);
    if (tensor === undefined) {
      if (optional) return [];
      throw new EngineError(`${gguf.file}: tensor ${there ?? name} is missing`);
    }
    used.add(tensor.name);
    if (tensor.shape.join() !== shape.join())
      throw new EngineError(
        `${gguf.file}: tensor ${tensor.name} has shape [${tensor.shape.join(", ")}]; its metadata asks for [${shape.join(", ")}]`,
      );
    const heads = headsOf(tensor.name, config);
    const read = async () => {
      const data = await readGgufTensor(gguf, tensor);
      if (!data.every(Number.isFinite))
        throw new EngineError(
          `${gguf.file}: tensor ${tensor.name} holds NaN or infinity; the file is damaged`,
        );
      if (architecture.normsPlusOne && name.endsWith("norm.weight"))
        for (let i = 0; i < data.length; i++) data[i]! -= 1;
      return architecture.permuted && heads !== undefined
        ? unpermute(data, heads, config.headSize)
        : data;
    };
    return [{ name, shape, read }];
  });
  const left = [...gguf.tensors.keys()].filter((name) => !used.has(name));
  if (left.length > 0)
    throw new EngineError(
      `${gguf.file}: tensors ${left.slice(0, 8).join(", ")}${left.length > 8 ? ` and ${left.length - 8} more` : ""} have no place in a ${architecture.key} model; it is not supported`,
    );
  return converted;
}

/** llama.cpp's name for a tensor of a checkpoint; undefined if it has none. */
export function ggufName(name: string, inLayer = IN_LAYER): string | undefined {
  const [, stem, kind] = /^(.*)\.(weight|bias)$/.exec(name) ?? [];
  if (stem === undefined) return undefined;
  const [, layer, part] = /^model\.layers\.(\d+)\.(.*)$/.exec(stem) ?? [];
  const found = layer === undefined ? OUTSIDE[stem] : inLayer[part!];
  if (found === undefined) return undefined;
  return layer === undefined ? `${found}.${kind}` : `blk.${layer}.${found}.${kind}`;
}

/** The heads of a query or key projection; undefined for other tensors. */
export function headsOf(name: string, config: ModelConfig): number | undefined {
  if (/\.attn_q\.(weight|bias)$/.test(name)) return config.heads;
  return /\.attn_k\.(weight|bias)$/.test(name) ? config.kvHeads : undefined;
}

/**
 * Undoes llama.cpp's order of rows: it rotates neighbouring rows (2i, 2i + 1) of a head together,
 * Hugging Face rows (i, i + half).
 */
export function unpermute(data: Float32Array, heads: number, headSize: number): Float32Array {
  return reorder(
    data,
    heads * headSize,
    (row) => row,
    (row) => halvesRow(row, headSize),
  );
}

/** Brings Hugging Face's rows into llama.cpp's order. */
export function permute(data: Float32Array, heads: number, headSize: number): Float32Array {
  return reorder(
    data,
    heads * headSize,
    (row) => halvesRow(row, headSize),
    (row) => row,
  );
}

/** Hugging Face's row of what is llama.cpp's row. */
function halvesRow(row: number, headSize: number): number {
  const inHead = row % headSize;
  return row - inHead + (inHead % 2) * (headSize / 2) + (inHead >> 1);
}

/** A copy in which row `to(i)` is what row `from(i)` was. */
function reorder(
  data: Float32Array,
  rows: number,
  from: (row: number) => number,
  to: (row: number) => number,
): Float32Array {
  const result = new Float32Array(data.length);
  const width = data.length / rows;
  for (let i = 0; i < rows; i++)
    result.set(data.subarray(from(i) * width, (from(i) + 1) * width), to(i) * width);
  return result;
}

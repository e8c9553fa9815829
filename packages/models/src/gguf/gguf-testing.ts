/** GGUF files for tests, written byte by byte. */
import { writeFileSync } from "node:fs";
import { buildTokenizer } from "@pawl/core/text/tokenizer-builder.js";
import { ggufHeader, padded, type WrittenMetadata, type WrittenValue } from "./gguf-write.js";

/** A tensor: its dimensions innermost first, its format's number, and its data. */
export interface WrittenTensor {
  readonly name: string;
  readonly dimensions: readonly number[];
  readonly type: number;
  readonly data: Uint8Array;
}

/** The bytes of a GGUF file; what tests corrupt, they corrupt in these. */
export function ggufBytes(
  metadata: WrittenMetadata,
  tensors: readonly WrittenTensor[],
  alignment = 32,
): Buffer {
  const listed = tensors.map(({ data, ...tensor }) => ({ ...tensor, bytes: data.length }));
  return Buffer.concat([
    ggufHeader(metadata, listed, alignment),
    ...tensors.flatMap(({ data }) => [
      data,
      Buffer.alloc(padded(data.length, alignment) - data.length),
    ]),
  ]);
}

/** Writes a GGUF file. */
export function writeGguf(file: string, ...parts: Parameters<typeof ggufBytes>): void {
  writeFileSync(file, ggufBytes(...parts));
}

/** A tensor of 32-bit floats. */
export function floatTensor(
  name: string,
  shape: readonly number[],
  value: (index: number) => number,
): WrittenTensor {
  const length = shape.reduce((product, size) => product * size, 1);
  const data = new Uint8Array(Float32Array.from({ length }, (_, i) => value(i)).buffer);
  return { name, dimensions: [...shape].reverse(), type: 0, data };
}

/** Sizes of the small model. */
const TINY = {
  width: 8,
  layers: 2,
  heads: 2,
  kvHeads: 1,
  headSize: 4,
  mlp: 12,
  context: 64,
};

/** The metadata and tensors of a small model that is complete: any of its parts may be replaced. */
export function tinyModel(
  architecture = "llama",
  { width } = { width: TINY.width },
): {
  metadata: Record<string, WrittenValue>;
  tensors: WrittenTensor[];
} {
  const { tokenizer } = buildTokenizer(["a mug is on the shelf and a plum is in the fridge"]).files;
  const { model } = JSON.parse(tokenizer) as {
    model: { vocab: Record<string, number>; merges: [string, string][] };
  };
  const tokens = Object.keys(model.vocab).sort((a, b) => model.vocab[a]! - model.vocab[b]!);
  const of = (key: string) => `${architecture}.${key}`;
  const { heads, kvHeads, headSize, mlp } = TINY;
  const tensor = (name: string, shape: readonly number[]) =>
    floatTensor(name, shape, (i) => Math.sin(i * 1.7 + name.length) / 3);
  const norms = (at: string) => [
    ...(/qwen3|gemma3/.test(architecture)
      ? [
          tensor(`${at}.attn_q_norm.weight`, [headSize]),
          tensor(`${at}.attn_k_norm.weight`, [headSize]),
        ]
      : []),
    ...(architecture === "gemma3"
      ? [
          tensor(`${at}.post_attention_norm.weight`, [width]),
          tensor(`${at}.post_ffw_norm.weight`, [width]),
        ]
      : []),
  ];
  const bias = (name: string, size: number) =>
    architecture === "qwen2" ? [tensor(`${name}.bias`, [size])] : [];
  return {
    metadata: {
      "general.architecture": { string: architecture },
      [of("block_count")]: { u32: TINY.layers },
      [of("context_length")]: { u32: TINY.context },
      [of("embedding_length")]: { u32: width },
      [of("feed_forward_length")]: { u32: mlp },
      [of("attention.head_count")]: { u32: heads },
      [of("attention.head_count_kv")]: { u32: kvHeads },
      [of("attention.layer_norm_rms_epsilon")]: { f32: 1e-5 },
      [of("rope.freq_base")]: { f32: 10_000 },
      ...(/qwen3|gemma3/.test(architecture) && {
        [of("attention.key_length")]: { u32: headSize },
        [of("attention.value_length")]: { u32: headSize },
      }),
      ...(architecture === "gemma3" && { [of("attention.sliding_window")]: { u32: 16 } }),
      "tokenizer.ggml.model": { string: "gpt2" },
      "tokenizer.ggml.pre": { string: "smollm" },
      "tokenizer.ggml.tokens": { strings: tokens },
      "tokenizer.ggml.token_type": { i32s: tokens.map((one) => (/^<\|/.test(one) ? 3 : 1)) },
      "tokenizer.ggml.merges": { strings: model.merges.map((pair) => pair.join(" ")) },
      "tokenizer.ggml.eos_token_id": { u32: tokens.indexOf("<|end|>") },
      "tokenizer.chat_template": {
        string: "{% for m in messages %}{{ m.role }}: {{ m.content }}<|end|>{% endfor %}",
      },
    },
    tensors: [
      tensor("token_embd.weight", [tokens.length, width]),
      ...Array.from({ length: TINY.layers }, (_, layer) => `blk.${layer}`).flatMap((at) => [
        tensor(`${at}.attn_norm.weight`, [width]),
        tensor(`${at}.attn_q.weight`, [heads * headSize, width]),
        tensor(`${at}.attn_k.weight`, [kvHeads * headSize, width]),
        tensor(`${at}.attn_v.weight`, [kvHeads * headSize, width]),
        ...bias(`${at}.attn_q`, heads * headSize),
        ...bias(`${at}.attn_k`, kvHeads * headSize),
        ...bias(`${at}.attn_v`, kvHeads * headSize),
        tensor(`${at}.attn_output.weight`, [width, heads * headSize]),
        ...norms(at),
        tensor(`${at}.ffn_norm.weight`, [width]),
        tensor(`${at}.ffn_gate.weight`, [mlp, width]),
        tensor(`${at}.ffn_up.weight`, [mlp, width]),
        tensor(`${at}.ffn_down.weight`, [width, mlp]),
      ]),
      tensor("output_norm.weight", [width]),
    ],
  };
}

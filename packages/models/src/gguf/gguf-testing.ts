/** GGUF files for tests, written byte by byte. */
import { writeFileSync } from "node:fs";
import { buildTokenizer } from "@pawl/core/text/tokenizer-builder.js";

/** A value of the metadata with its type. */
export type Written =
  | { readonly u32: number }
  | { readonly i32: number }
  | { readonly f32: number }
  | { readonly bool: boolean }
  | { readonly string: string }
  | { readonly strings: readonly string[] }
  | { readonly i32s: readonly number[] }
  | { readonly f32s: readonly number[] };

/** A tensor: its dimensions innermost first, its format's number, and its data. */
export interface WrittenTensor {
  readonly name: string;
  readonly dimensions: readonly number[];
  readonly type: number;
  readonly data: Uint8Array;
}

/** The bytes of a GGUF file; what tests corrupt, they corrupt in these. */
export function ggufBytes(
  metadata: Readonly<Record<string, Written>>,
  tensors: readonly WrittenTensor[],
  alignment = 32,
): Buffer {
  const pad = (length: number) => Math.ceil(length / alignment) * alignment;
  const header = [Buffer.from("GGUF"), u32(3), u64(tensors.length)];
  header.push(u64(Object.keys(metadata).length));
  for (const [key, value] of Object.entries(metadata))
    header.push(string(key), Buffer.concat(encode(value)));
  let offset = 0;
  for (const { name, dimensions, type, data } of tensors) {
    header.push(string(name), u32(dimensions.length), ...dimensions.map(u64), u32(type));
    header.push(u64(offset));
    offset += pad(data.length);
  }
  const start = Buffer.concat(header);
  return Buffer.concat([
    start,
    Buffer.alloc(pad(start.length) - start.length),
    ...tensors.flatMap(({ data }) => [data, Buffer.alloc(pad(data.length) - data.length)]),
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

export function u32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}

export function u64(value: number | bigint): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt(value));
  return bytes;
}

function string(text: string): Buffer {
  const bytes = Buffer.from(text);
  return Buffer.concat([u64(bytes.length), bytes]);
}

function numbers(write: "writeInt32LE" | "writeFloatLE", values: readonly number[]): Buffer {
  const bytes = Buffer.alloc(4 * values.length);
  values.forEach((value, i) => {
    bytes[write](value, 4 * i);
  });
  return bytes;
}

function encode(value: Written): readonly Buffer[] {
  if ("u32" in value) return [u32(4), u32(value.u32)];
  if ("i32" in value) return [u32(5), numbers("writeInt32LE", [value.i32])];
  if ("f32" in value) return [u32(6), numbers("writeFloatLE", [value.f32])];
  if ("bool" in value) return [u32(7), Buffer.of(value.bool ? 1 : 0)];
  if ("string" in value) return [u32(8), string(value.string)];
  if ("strings" in value)
    return [u32(9), u32(8), u64(value.strings.length), ...value.strings.map(string)];
  if ("i32s" in value)
    return [u32(9), u32(5), u64(value.i32s.length), numbers("writeInt32LE", value.i32s)];
  return [u32(9), u32(6), u64(value.f32s.length), numbers("writeFloatLE", value.f32s)];
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
export function tinyModel(architecture = "llama"): {
  metadata: Record<string, Written>;
  tensors: WrittenTensor[];
} {
  const { tokenizer } = buildTokenizer(["a mug is on the shelf and a plum is in the fridge"]).files;
  const { model } = JSON.parse(tokenizer) as {
    model: { vocab: Record<string, number>; merges: [string, string][] };
  };
  const tokens = Object.keys(model.vocab).sort((a, b) => model.vocab[a]! - model.vocab[b]!);
  const of = (key: string) => `${architecture}.${key}`;
  const { width, heads, kvHeads, headSize, mlp } = TINY;
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

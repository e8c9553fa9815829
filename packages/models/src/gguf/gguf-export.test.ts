import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createTokenizer, loadTokenizer, type Tokenizer } from "@pawl/core/text/tokenizer.js";
import { buildTokenizer } from "@pawl/core/text/tokenizer-builder.js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openCheckpoint, writeCheckpoint } from "../weights/checkpoint.js";
import { parseModelConfig } from "../weights/config-json.js";
import { decodeFloat16, encodeFloat16 } from "../weights/half-precision.js";
import { ARCHITECTURES, type Architecture, type ModelConfig } from "../weights/model-config.js";
import { tensorSpecs, VALUE_HEAD } from "../weights/tensor-names.js";
import { readGgufModel } from "./gguf-convert.js";
import { type GgufWeights, prepareGguf, writeGgufExport } from "./gguf-export.js";
import { openGguf } from "./gguf-file.js";
import { permute, unpermute } from "./gguf-tensors.js";
import { tinyModel, writeGguf } from "./gguf-testing.js";
import { ggufTokenizer } from "./gguf-tokenizer.js";
import { tokenizerMetadata } from "./gguf-tokenizer-metadata.js";

let folder: string;
let plain: Tokenizer;
let sentences: readonly string[];
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "gguf-export-"));
  plain = await tokenizerOf("smollm");
  const fixtures = "packages/core/src/text/fixtures/sentences.json";
  sentences = JSON.parse(await readFile(fixtures, "utf8")) as string[];
});
afterAll(() => rmSync(folder, { recursive: true }));

/** A tokenizer with one of llama.cpp's rules, as it is read from a file. */
async function tokenizerOf(pre: string, begins = false): Promise<Tokenizer> {
  const { metadata, tensors } = tinyModel();
  metadata["tokenizer.ggml.pre"] = { string: pre };
  metadata["tokenizer.ggml.eot_token_id"] = { u32: 3 };
  metadata["tokenizer.ggml.bos_token_id"] = { u32: 1 };
  metadata["tokenizer.ggml.add_bos_token"] = { bool: begins };
  const file = join(folder, "tokenizer.gguf");
  writeGguf(file, metadata, tensors);
  return (await readGgufModel(openGguf(file))).tokenizer;
}

/** A small model's configuration, as config.json says it; it has more embeddings than tokens. */
function configOf(
  architecture: Architecture,
  more: Readonly<Record<string, unknown>> = {},
): ModelConfig {
  const fields = {
    architectures: [architecture],
    vocab_size: plain.vocabularySize + 5,
    hidden_size: 64,
    num_hidden_layers: 4,
    num_attention_heads: 4,
    num_key_value_heads: 2,
    head_dim: 16,
    intermediate_size: 80,
    max_position_embeddings: 512,
    rope_theta: 123_456,
    rms_norm_eps: 1e-5,
    tie_word_embeddings: true,
    ...more,
  };
  return parseModelConfig(fields, architecture);
}

let models = 0;
async function checkpointOf(
  config: ModelConfig,
  change: (name: string, data: Float32Array) => void = () => undefined,
) {
  const tensors = tensorSpecs(config).map(({ name, shape }, at) => {
    const length = shape.reduce((product, size) => product * size, 1);
    const data = Float32Array.from({ length }, (_, i) => Math.sin(i * 1.7 + at) / 3);
    change(name, data);
    return [name, { shape, data }] as const;
  });
  const out = join(folder, `model-${models++}`);
  await writeCheckpoint(out, config, new Map(tensors));
  return openCheckpoint(out);
}

async function roundTrip(config: ModelConfig, weights: GgufWeights, tokenizer = plain) {
  const file = join(folder, "out.gguf");
  rmSync(file, { force: true });
  const checkpoint = await checkpointOf(config);
  await writeGgufExport(prepareGguf(file, checkpoint, tokenizer, weights));
  const gguf = openGguf(file);
  return { checkpoint, gguf, model: await readGgufModel(gguf) };
}

function halves(data: Float32Array): Float32Array {
  const bits = new Uint16Array(data.length);
  encodeFloat16(data, bits);
  const result = new Float32Array(data.length);
  decodeFloat16(bits, result);
  return result;
}

const bytesOf = ({ buffer, byteOffset, byteLength }: Float32Array) =>
  Buffer.from(buffer, byteOffset, byteLength);

const DENSE = ["LlamaForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM"] as const;

describe("a model written as GGUF", () => {
  it.each([...DENSE, "SmolLM3ForCausalLM", "MistralForCausalLM"] as const)(
    "%s has the same numbers when it is read back, rounded to 16 bits",
    async (name) => {
      const config = configOf(name);
      const { checkpoint, gguf, model } = await roundTrip(config, "f16");
      expect(model.tensors.map((tensor) => tensor.name)).toEqual(
        checkpoint.tensors.map((tensor) => tensor.name).filter((one) => one !== VALUE_HEAD),
      );
      for (const { name: tensor, shape, read } of model.tensors) {
        const data = await checkpoint.read(tensor);
        const expected = shape.length === 1 ? data : halves(data);
        expect(bytesOf(await read()).equals(bytesOf(expected)), tensor).toBe(true);
      }
      expect(gguf.tensors.has("output.weight")).toBe(false);
      expect(gguf.tensors.get("blk.0.attn_norm.weight")!.format.name).toBe("F32");
      const back = parseModelConfig(model.config, "back");
      const { modelType } = ARCHITECTURES[name];
      const named = modelType === "mistral" ? "LlamaForCausalLM" : name;
      for (const id of ["bosTokenId", "eosTokenIds", "padTokenId"] as const) delete back[id];
      expect({ ...back, slidingWindow: undefined }).toEqual({
        ...{ ...config, slidingWindow: undefined },
        architecture: named,
      });
    },
  );

  it("has 8 bits a weight within half a step of each block, and 16 where rows are no blocks", async () => {
    const { checkpoint, gguf, model } = await roundTrip(configOf("LlamaForCausalLM"), "q8_0");
    const names = ["blk.0.ffn_up", "blk.0.ffn_down", "token_embd", "output_norm"];
    expect(names.map((one) => gguf.tensors.get(`${one}.weight`)!.format.name)).toEqual([
      ...["Q8_0", "F16", "Q8_0", "F32"],
    ]);
    for (const { name, shape, read } of model.tensors) {
      const [data, back] = [await checkpoint.read(name), await read()];
      if (shape.at(-1) !== 64 || shape.length === 1) continue;
      for (let i = 0; i < data.length; i += 32) {
        const block = data.subarray(i, i + 32);
        const step = Math.max(...block.map(Math.abs)) / 127;
        // The scale has 11 bits, so up to 127 steps are off by 2^-11 of their size.
        const allowed = step * (0.5 + 127 * 2 ** -11);
        const worst = Math.max(...block.map((one, at) => Math.abs(one - back[i + at]!)));
        if (worst > allowed) expect.fail(`${name}, at ${i}: off by ${worst}`);
      }
    }
  });

  it("has an output matrix of its own where it has one, and Llama 3's, YaRN's and linear rope scaling", async () => {
    const untied = await roundTrip(
      configOf("LlamaForCausalLM", { tie_word_embeddings: false }),
      "f16",
    );
    expect(untied.model.config.tie_word_embeddings).toBe(false);
    expect(untied.gguf.tensors.has("output.weight")).toBe(true);
    const llama3 = { low_freq_factor: 1, high_freq_factor: 4 };
    for (const rope of [
      { rope_type: "llama3", factor: 32, ...llama3, original_max_position_embeddings: 8192 },
      { rope_type: "yarn", factor: 4, original_max_position_embeddings: 128 },
      { rope_type: "linear", factor: 2.5 },
    ]) {
      const config = configOf("LlamaForCausalLM", { rope_scaling: rope });
      const { model } = await roundTrip(config, "f16");
      expect(parseModelConfig(model.config, "back").ropeScaling).toEqual(config.ropeScaling);
    }
  });

  it.each([
    [
      "Gemma3ForCausalLM",
      {},
      /architecture gemma3_text cannot be written as GGUF; these can: llama, qwen2, qwen3, smollm3, mistral/,
    ],
    [
      "MistralForCausalLM",
      { sliding_window: 64 },
      /no place for its sliding window \(\[64,64,64,64\]\)/,
    ],
    [
      "SmolLM3ForCausalLM",
      { no_rope_layers: [1, 0, 1, 0] },
      /its layers without a rotary embedding \(\[1,3\]\)/,
    ],
    [
      "Qwen2ForCausalLM",
      { rope_scaling: { rope_type: "yarn", factor: 4, beta_fast: 16 } },
      /no place for its rope scaling .*"betaFast":16/,
    ],
    [
      "LlamaForCausalLM",
      {
        rope_scaling: {
          ...{ rope_type: "llama3", factor: 8, low_freq_factor: 1, high_freq_factor: 2 },
          original_max_position_embeddings: 8192,
        },
      },
      /no place for its rope scaling/,
    ],
  ] as const)(
    "of %s with %j is refused before anything is written",
    async (name, more, message) => {
      const refused = join(folder, "refused.gguf");
      const checkpoint = await checkpointOf(configOf(name, more));
      expect(() => prepareGguf(refused, checkpoint, plain, "f16")).toThrow(message);
      expect(existsSync(refused)).toBe(false);
    },
  );

  it("is refused with a weight beyond 16 bits, and leaves nothing", async () => {
    const checkpoint = await checkpointOf(configOf("LlamaForCausalLM"), (name, data) => {
      if (name.endsWith("up_proj.weight")) data[7] = 70_000;
    });
    const refused = join(folder, "large.gguf");
    const writing = writeGgufExport(prepareGguf(refused, checkpoint, plain, "f16"));
    await expect(writing).rejects.toThrow(
      /large.gguf: tensor blk.0.ffn_up.weight holds 70000, which F16 cannot; expected less than 65520/,
    );
    expect(readdirSync(folder).filter((one) => one.startsWith("large"))).toEqual([]);
  });

  it("has rows in the order that the reader undoes", () => {
    const data = Float32Array.from({ length: 3 * 8 * 5 }, (_, i) => i);
    expect(unpermute(permute(data, 3, 8), 3, 8)).toEqual(data);
    expect([...permute(Float32Array.of(0, 2, 4, 1, 3, 5), 1, 6)]).toEqual([0, 1, 2, 3, 4, 5]);
  });
});

describe("a tokenizer written as GGUF", () => {
  it.each(["smollm", "qwen2", "llama-bpe", "gpt-2"])("by %s gives the same ids", async (pre) => {
    const tokenizer = await tokenizerOf(pre, pre === "llama-bpe");
    const { gguf, model } = await roundTrip(configOf("LlamaForCausalLM"), "f16", tokenizer);
    const { tokenizer: back } = model;
    for (const text of sentences) expect(back.encode(text)).toEqual(tokenizer.encode(text));
    const chat = [{ role: "user", content: "a mug" }] as const;
    expect(back.chat(chat)).toBe(tokenizer.chat(chat));
    for (const key of ["beginId", "endIds", "padId", "specialIds"] as const)
      expect(back[key]).toEqual(tokenizer[key]);
    expect(gguf.metadata.get("tokenizer.ggml.pre")).toBe(pre);
    expect(gguf.metadata.get("tokenizer.ggml.add_bos_token")).toBe(pre === "llama-bpe");
    // Embeddings without a token have one that no text becomes.
    expect(back.vocabularySize).toBe(tokenizer.vocabularySize + 5);
    expect(back.decode([back.vocabularySize - 1])).toMatch(/^\[PAD\d+\]$/);
  });

  interface TokenizerJson {
    pre_tokenizer: unknown;
    post_processor: unknown;
    readonly added_tokens: { lstrip: boolean }[];
    readonly model: { ignore_merges: boolean; byte_fallback: boolean };
  }
  const changed = (change: (json: TokenizerJson) => void, generation?: object) => {
    const json = JSON.parse(plain.files.tokenizer) as TokenizerJson;
    change(json);
    const files = { ...plain.files, tokenizer: JSON.stringify(json) };
    return createTokenizer(
      generation === undefined ? files : { ...files, generation: JSON.stringify(generation) },
    );
  };
  const refusal = (tokenizer: Tokenizer) => () =>
    tokenizerMetadata(tokenizer, tokenizer.vocabularySize, "here");

  it("is refused if llama.cpp has no such rule", () => {
    expect(refusal(buildTokenizer(["a mug is on the shelf"]))).toThrow(
      /here: the tokenizer cannot be written as GGUF: it was made from an environment's text/,
    );
    const words = (json: TokenizerJson) => {
      json.pre_tokenizer = { type: "Whitespace" };
    };
    expect(refusal(changed(words))).toThrow(/its rule for words .* is none of SmolLM's, Qwen2's/);
    const merged = (json: TokenizerJson) => {
      json.model.ignore_merges = true;
    };
    expect(refusal(changed(merged))).toThrow(/its rule for words/);
    const bytes = (json: TokenizerJson) => {
      json.model.byte_fallback = true;
    };
    expect(refusal(changed(bytes))).toThrow(/it is SentencePiece's; only byte-level BPE/);
    const blanks = (json: TokenizerJson) => {
      json.added_tokens[2]!.lstrip = true;
    };
    expect(refusal(changed(blanks))).toThrow(/takes the blanks beside it/);
    const after = (json: TokenizerJson) => {
      json.post_processor = { type: "RobertaProcessing", sep: ["a", 1], cls: ["b", 2] };
    };
    expect(refusal(changed(after))).toThrow(/its post_processor adds other tokens than bos_token/);
    const ends = changed(() => undefined, { eos_token_id: [2, 3, 4, 5] });
    expect(refusal(ends)).toThrow(/\d tokens end a turn .*; expected 1 to 3/);
  });

  const qwen = process.env.PAWL_QWEN_TOKENIZER;
  if (!qwen) console.warn("PAWL_QWEN_TOKENIZER is not set: no real tokenizer is written as GGUF");
  it.skipIf(!qwen)("of Qwen2.5 gives the same ids", async () => {
    const tokenizer = await loadTokenizer(qwen!);
    const written = Object.entries(tokenizerMetadata(tokenizer, 151_936, qwen!));
    const values = written.map(
      ([key, value]) =>
        [key, "i32s" in value ? Int32Array.from(value.i32s) : Object.values(value)[0]] as const,
    );
    const metadata = new Map([...values, ["general.architecture", "qwen2"]] as const);
    const file = { file: "memory", size: 0, metadata, tensors: new Map() };
    const back = createTokenizer(ggufTokenizer(file));
    const fixture = "packages/core/src/text/fixtures/ids-qwen2.5.json";
    const ids = JSON.parse(await readFile(fixture, "utf8")) as number[][];
    expect(sentences.map((text) => back.encode(text))).toEqual(ids);
  });
});

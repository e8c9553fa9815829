import { EngineError } from "@pawl/core/engine/engine.js";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { formatModelConfig, parseModelConfig } from "./config-json.js";
import { type ModelConfig, windowsOf } from "./model-config.js";
import type { RopeScaling } from "./rope.js";

const size = fc.integer({ min: 1, max: 200 });
const anyConfig: fc.Arbitrary<ModelConfig> = fc
  .record({
    vocabularySize: size,
    hiddenSize: size,
    layers: size,
    kvHeads: fc.integer({ min: 1, max: 4 }),
    group: fc.integer({ min: 1, max: 4 }),
    halfHead: size,
    mlpSize: size,
    maxContext: size,
    ropeTheta: fc.constantFrom(10_000, 1_000_000),
    ropeScaling: fc.option(
      fc.constantFrom<RopeScaling>(
        { type: "dynamic", factor: 2 },
        { type: "linear", factor: 8 },
        {
          type: "llama3",
          factor: 32,
          lowFrequencyFactor: 1,
          highFrequencyFactor: 4,
          originalContext: 8192,
        },
      ),
    ),
    normEps: fc.constantFrom(1e-5, 1e-6),
    tiedEmbeddings: fc.boolean(),
    named: fc.constantFrom<Pick<ModelConfig, "architecture" | "qkvBias" | "qkNorms">>(
      { architecture: "LlamaForCausalLM", qkvBias: false },
      { architecture: "Qwen2ForCausalLM", qkvBias: true },
      { architecture: "Qwen3ForCausalLM", qkvBias: false, qkNorms: true },
      { architecture: "MistralForCausalLM", qkvBias: false },
    ),
    tokens: fc.option(
      fc.record({ bosTokenId: size, eosTokenIds: fc.array(size), padTokenId: size }),
    ),
  })
  .map(({ group, halfHead, tokens, ropeScaling, named, ...rest }) => ({
    ...rest,
    ...named,
    ...(ropeScaling && { ropeScaling }),
    heads: group * rest.kvHeads,
    headSize: 2 * halfHead,
    ...tokens,
  }));

/**
 * A configuration with the fields that transformers writes for a Qwen2 model, some of them
 * irrelevant to us.
 */
const QWEN = {
  architectures: ["Qwen2ForCausalLM"],
  model_type: "qwen2",
  vocab_size: 1000,
  hidden_size: 112,
  num_hidden_layers: 3,
  num_attention_heads: 14,
  num_key_value_heads: 2,
  intermediate_size: 320,
  max_position_embeddings: 512,
  rope_theta: 1000000.0,
  rms_norm_eps: 1e-6,
  hidden_act: "silu",
  tie_word_embeddings: true,
  use_sliding_window: false,
  attention_dropout: 0.0,
  torch_dtype: "bfloat16",
  bos_token_id: 997,
  eos_token_id: 998,
};

function refusalOf(json: unknown): string {
  try {
    parseModelConfig(json, "config.json");
  } catch (error) {
    expect(error).toBeInstanceOf(EngineError);
    return (error as Error).message;
  }
  throw new Error("expected the configuration to be refused");
}

describe("model configuration", () => {
  it("survives a round trip", () => {
    fc.assert(
      fc.property(anyConfig, (config) => {
        const json = JSON.parse(JSON.stringify(formatModelConfig(config)));
        expect(parseModelConfig(json, "config.json")).toEqual(config);
      }),
    );
  });

  it("reads a Qwen2 configuration", () => {
    expect(parseModelConfig(QWEN, "config.json")).toEqual({
      architecture: "Qwen2ForCausalLM",
      vocabularySize: 1000,
      hiddenSize: 112,
      layers: 3,
      heads: 14,
      kvHeads: 2,
      headSize: 8,
      mlpSize: 320,
      maxContext: 512,
      ropeTheta: 1_000_000,
      normEps: 1e-6,
      tiedEmbeddings: true,
      qkvBias: true,
      bosTokenId: 997,
      eosTokenIds: [998],
    });
  });

  it("reads a Llama configuration without the fields that have defaults", () => {
    const { num_key_value_heads: _, rope_theta: __, tie_word_embeddings: ___, ...rest } = QWEN;
    const llama = { ...rest, architectures: ["LlamaForCausalLM"], rope_scaling: null };
    expect(parseModelConfig(llama, "config.json")).toMatchObject({
      kvHeads: 14,
      ropeTheta: 10_000,
      tiedEmbeddings: false,
      qkvBias: false,
    });
  });

  it("reads a Qwen3 configuration, whose heads have a default size of their own", () => {
    const qwen3 = { ...QWEN, architectures: ["Qwen3ForCausalLM"] };
    expect(parseModelConfig(qwen3, "config.json")).toMatchObject({ headSize: 128, qkNorms: true });
    expect(parseModelConfig({ ...qwen3, head_dim: 64 }, "config.json").headSize).toBe(64);
  });

  it("reads sliding windows where each architecture has them", () => {
    const windowIn = (name: string, change: object) =>
      parseModelConfig({ ...QWEN, architectures: [name], ...change }, "config.json").slidingWindow;
    const some = { use_sliding_window: true, sliding_window: 64, max_window_layers: 1 };
    expect(windowIn("Qwen2ForCausalLM", some)).toEqual({ size: 64, layers: [1, 2] });
    expect(windowIn("Qwen2ForCausalLM", { ...some, use_sliding_window: false })).toBe(undefined);
    expect(windowIn("Qwen3ForCausalLM", { ...some, max_window_layers: 3 })).toBe(undefined);
    const types = ["sliding_attention", "full_attention", "full_attention"];
    expect(windowIn("Qwen3ForCausalLM", { ...some, layer_types: types })?.layers).toEqual([0]);
    expect(windowIn("MistralForCausalLM", { sliding_window: null })).toBe(undefined);
    expect(windowIn("MistralForCausalLM", {})).toEqual({ size: 4096, layers: [0, 1, 2] });
    expect(windowIn("LlamaForCausalLM", { sliding_window: 64 })).toBe(undefined);
  });

  it("reads which layers of SmolLM3 have no rotary embedding", () => {
    const read = (change: object) =>
      parseModelConfig(
        {
          ...QWEN,
          architectures: ["SmolLM3ForCausalLM"],
          rope_theta: undefined,
          tie_word_embeddings: undefined,
          ...change,
        },
        "config.json",
      );
    expect(read({})).toMatchObject({ ropeTheta: 2_000_000, tiedEmbeddings: true });
    expect(read({}).unrotatedLayers).toBe(undefined);
    expect(read({ num_hidden_layers: 9 }).unrotatedLayers).toEqual([3, 7]);
    const marked = { no_rope_layers: [0, 1, 0], use_sliding_window: true, sliding_window: 64 };
    expect(read(marked)).toMatchObject({
      unrotatedLayers: [0, 2],
      slidingWindow: { size: 64, layers: [0, 2] },
    });
    const { bosTokenId: _, eosTokenIds: __, ...config } = read(marked);
    expect(parseModelConfig(formatModelConfig(config), "config.json")).toEqual(config);
  });

  it("reads Gemma 3 in the spelling of its own checkpoints and in the newer one", () => {
    const gemma = {
      ...QWEN,
      architectures: ["Gemma3ForCausalLM"],
      num_hidden_layers: 7,
      hidden_act: undefined,
      tie_word_embeddings: undefined,
      rope_theta: 1_000_000,
      rope_local_base_freq: 20_000,
      rope_scaling: { rope_type: "linear", factor: 8 },
      sliding_window: 64,
      sliding_window_pattern: 3,
      query_pre_attn_scalar: 168,
    };
    const expected = {
      headSize: 256,
      tiedEmbeddings: true,
      normsPlusOne: true,
      outputNorms: true,
      scaledEmbeddings: true,
      gelu: true,
      queryScalar: 168,
      ropeTheta: 1_000_000,
      ropeScaling: { type: "linear", factor: 8 },
      slidingWindow: { size: 64, layers: [0, 1, 3, 4, 6], ropeTheta: 20_000 },
    };
    const config = parseModelConfig(gemma, "config.json");
    expect(config).toMatchObject(expected);
    expect(parseModelConfig(formatModelConfig(config), "config.json")).toEqual(config);
    const { rope_theta: _, rope_local_base_freq: __, rope_scaling: ___, ...rest } = gemma;
    const rope_parameters = {
      full_attention: { rope_type: "linear", factor: 8, rope_theta: 1_000_000 },
      sliding_attention: { rope_type: "default", rope_theta: 20_000 },
    };
    expect(parseModelConfig({ ...rest, rope_parameters }, "config.json")).toEqual(config);
    expect(parseModelConfig(rest, "config.json")).toMatchObject({
      ropeTheta: 1_000_000,
      slidingWindow: { ropeTheta: 10_000 },
    });
    const full = { ...gemma, layer_types: Array(7).fill("full_attention") };
    const plain = parseModelConfig(full, "config.json");
    expect(plain.slidingWindow).toBe(undefined);
    expect(parseModelConfig(formatModelConfig(plain), "config.json")).toEqual(plain);
  });

  it.each([
    [{ final_logit_softcapping: 30 }, /not supported: final_logit_softcapping/],
    [{ attn_logit_softcapping: 50 }, /not supported: attn_logit_softcapping/],
    [{ use_bidirectional_attention: true }, /use_bidirectional_attention/],
    [{ hidden_activation: "gelu" }, /hidden_activation "gelu"; only "gelu_pytorch_tanh" is/],
    [{ sliding_window: null }, /layer_types with "sliding_attention" in a model without/],
    [
      { rope_parameters: { rope_type: "linear", factor: 2 } },
      /rope_parameters not by type of layer/,
    ],
    [
      { rope_parameters: { sliding_attention: { rope_type: "linear", factor: 2 } } },
      /rope_parameters of type "linear" in layers with a sliding window/,
    ],
  ])("refuses %o in Gemma 3", (change, message) => {
    const layer_types = Array(3).fill("sliding_attention");
    const gemma = { ...QWEN, architectures: ["Gemma3ForCausalLM"], layer_types, ...change };
    expect(refusalOf(gemma)).toMatch(message);
  });

  it("refuses rotary embeddings by type of layer in other architectures", () => {
    const rope_parameters = { full_attention: { rope_theta: 10_000 } };
    expect(refusalOf({ ...QWEN, rope_parameters })).toMatch(/rope_parameters by type of layer/);
  });

  it("has no window in layers that see the whole context", () => {
    const of = (sliding_window: number) =>
      parseModelConfig(
        { ...QWEN, architectures: ["MistralForCausalLM"], sliding_window },
        "config.json",
      );
    expect(windowsOf(of(511))).toEqual([511]);
    expect(windowsOf(of(512))).toEqual([undefined]);
    expect(formatModelConfig(of(4096))).toMatchObject({ sliding_window: 4096 });
  });

  it("names an architecture without a name by its biases", () => {
    const { architecture: _, ...rest } = parseModelConfig(QWEN, "config.json");
    expect(formatModelConfig(rest)).toMatchObject({ architectures: ["Qwen2ForCausalLM"] });
    expect(formatModelConfig({ ...rest, qkvBias: false })).toMatchObject({ model_type: "llama" });
  });

  it("finds the rotary base where newer versions of transformers put it", () => {
    const { rope_theta: _, ...rest } = QWEN;
    const json = { ...rest, rope_parameters: { rope_type: "default", rope_theta: 5000 } };
    expect(parseModelConfig(json, "config.json").ropeTheta).toBe(5000);
  });

  it("finds a stretched rotary embedding in either spelling, the older first", () => {
    const { rope_theta: _, ...rest } = QWEN;
    const newer = { rope_type: "linear", factor: 4, rope_theta: 5000 };
    expect(parseModelConfig({ ...rest, rope_parameters: newer }, "config.json")).toMatchObject({
      ropeTheta: 5000,
      ropeScaling: { type: "linear", factor: 4 },
    });
    const both = { ...QWEN, rope_scaling: { type: "dynamic", factor: 2 }, rope_parameters: newer };
    expect(parseModelConfig(both, "config.json")).toMatchObject({
      ropeTheta: 1_000_000,
      ropeScaling: { type: "dynamic", factor: 2 },
    });
  });

  it.each([
    [
      { architectures: ["GPT2LMHeadModel"] },
      /GPT2LMHeadModel is not supported; supported: LlamaForCausalLM, Qwen2ForCausalLM, Qwen3/,
    ],
    [{ architectures: undefined }, /no "architectures"/],
    [{ rope_scaling: { rope_type: "llama3", factor: 32 } }, /rope_scaling\.low_freq_factor/],
    [{ rope_parameters: { rope_type: "longrope" } }, /rope_scaling of type "longrope"/],
    [{ partial_rotary_factor: 0.25 }, /partial_rotary_factor 0\.25/],
    [{ hidden_act: "gelu" }, /hidden_act "gelu"; only "silu" is/],
    [{ architectures: ["LlamaForCausalLM"], attention_bias: true }, /attention_bias, which/],
    [{ architectures: ["Qwen3ForCausalLM"], attention_bias: true }, /attention_bias, which/],
    [{ mlp_bias: true }, /mlp_bias/],
    [
      { architectures: ["LlamaForCausalLM"], use_sliding_window: true },
      /use_sliding_window in this/,
    ],
    [
      { layer_types: Array(3).fill("chunked_attention") },
      /layer_types with "chunked_attention"; only/,
    ],
    [
      { architectures: ["SmolLM3ForCausalLM"], no_rope_layers: [1, 0] },
      /no_rope_layers has 2 entries; expected one for each of 3 layers/,
    ],
    [{ layer_types: ["full_attention"] }, /layer_types for 1 layers; the model has 3/],
    [{ layer_types: Array(3).fill("sliding_attention") }, /in a model without a sliding window/],
    [
      {
        architectures: ["MistralForCausalLM"],
        sliding_window: 9,
        layer_types: ["full_attention", "sliding_attention", "sliding_attention"],
      },
      /layer_types that differ from layer to layer/,
    ],
    [{ quantization_config: { bits: 4 } }, /quantization_config/],
    [{ hidden_size: "112" }, /^config\.json: hidden_size: .*expected number, received string/],
    [{ vocab_size: undefined }, /vocab_size/],
    [{ num_hidden_layers: 1e9 }, /num_hidden_layers/],
    [{ num_key_value_heads: 3 }, /14 attention heads cannot share 3 key-value heads/],
    [{ head_dim: 7 }, /heads of size 7 cannot be rotated in pairs/],
    [{ num_attention_heads: 1000, num_key_value_heads: 1 }, /heads of size 0/],
  ])("refuses %o", (change, message) => {
    expect(refusalOf({ ...QWEN, ...change })).toMatch(message);
  });

  it("fails on arbitrary JSON only with its own error", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (json) => {
        expect(refusalOf(json)).toMatch(/^config\.json: /);
        const architectures = ["LlamaForCausalLM"];
        if (typeof json === "object")
          expect(refusalOf({ ...json, architectures })).toMatch(/^config\.json: /);
      }),
    );
  });
});

/**
 * The model, defined once: a decoder-only transformer of the Llama and Qwen2 family.
 *
 * Training, scoring, prefill and decode are built from the same pieces. They differ only in which
 * positions they compute and where keys and values come from.
 */
import { adaptedTensors, type LoraOptions, loraScale } from "../weights/lora.js";
import type { ModelConfig } from "../weights/model-config.js";
import {
  EMBEDDING,
  FINAL_NORM,
  layerNames,
  OUTPUT_HEAD,
  type TensorSpec,
  tensorSpecs,
  VALUE_HEAD,
} from "../weights/tensor-names.js";
import { addInput, addStored, type Dimension, type Graph, type Tensor } from "./graph.js";
import { attention, type RotaryTables, rmsNorm, rotate, swiglu } from "./layers.js";
import { add, linear, lookup, type MergedAdapter, repeatHeads, reshape, transpose } from "./ops.js";

/** The model's parameters in a graph, by their names in checkpoints. */
export type Weights = ReadonlyMap<string, Tensor>;

/** Declares the parameters as graph inputs. */
export function declareWeights(graph: Graph, config: ModelConfig, valueHead: boolean): Weights {
  return new Map(
    tensorSpecs(config)
      .filter((spec) => valueHead || spec.name !== VALUE_HEAD)
      .map((spec) => [spec.name, addInput(graph, spec.name, "float32", spec.shape)]),
  );
}

/** Declares the adapters as graph inputs, by the name of the weight they are merged into. */
export function declareAdapters(
  graph: Graph,
  config: ModelConfig,
  lora: LoraOptions,
): ReadonlyMap<string, MergedAdapter> {
  const declare = ({ name, shape }: TensorSpec) => addInput(graph, name, "float32", shape);
  return new Map(
    adaptedTensors(config, lora).map(({ name, down, up }) => [
      name,
      { down: declare(down), up: declare(up), scale: loraScale(lora) },
    ]),
  );
}

/** Stores the parameters in the graph, without a value head. */
export function storeWeights(
  graph: Graph,
  config: ModelConfig,
  parameters: ReadonlyMap<string, Float32Array>,
): Weights {
  return new Map(
    tensorSpecs(config)
      .filter((spec) => spec.name !== VALUE_HEAD)
      .map(({ name, shape }) => [name, addStored(graph, name, shape, parameters.get(name)!)]),
  );
}

/** Declares the rotary tables as graph inputs: [positions, headSize / 2] each. */
export function declareTables(graph: Graph, config: ModelConfig): RotaryTables {
  const shape = ["table", config.headSize / 2];
  return {
    cos: addInput(graph, "cos", "float32", shape),
    sin: addInput(graph, "sin", "float32", shape),
  };
}

/** A weight by name. */
export function weight(weights: Weights, name: string): Tensor {
  const found = weights.get(name);
  if (found === undefined) throw new Error(`the graph has no weight ${name}`);
  return found;
}

/** Everything the layers need besides the tokens. */
export interface Context {
  readonly config: ModelConfig;
  readonly weights: Weights;
  readonly tables: RotaryTables;
  /** The adapters that are merged into weights and are trained in their place, by weight. */
  readonly adapters?: ReadonlyMap<string, MergedAdapter>;
}

/** A projection of x by the name of its weight. */
function projected({ weights, adapters }: Context, name: string, x: Tensor): Tensor {
  return linear(x, weight(weights, name), adapters?.get(name));
}

/** The embedding of ids [tokens]. */
export function embed(context: Context, ids: Tensor): Tensor {
  return lookup(weight(context.weights, EMBEDDING), ids);
}

/** A batch of packed rows inside a graph. */
export interface PackedRows {
  /** [rows, length] */
  readonly positions: Tensor;
  /** One for each block of queries, as `attention` takes them. */
  readonly masks: readonly Tensor[];
  /** Called with the keys and values [rows, kvHeads, length, headSize], for a cache. */
  readonly onKeysValues?: (keys: Tensor, values: Tensor) => void;
}

/** One layer over packed rows, for x [tokens, hiddenSize]. */
export function layer(context: Context, index: number, x: Tensor, packed: PackedRows): Tensor {
  return finishLayer(context, index, x, attend(context, index, x, packed));
}

/**
 * The attention output of a layer over packed rows, for x [tokens, hiddenSize]: [tokens, heads ·
 * headSize].
 */
export function attend(context: Context, index: number, x: Tensor, packed: PackedRows): Tensor {
  const { config } = context;
  const names = layerNames(index);
  const normed = rmsNorm(x, weight(context.weights, names.attentionNorm), config.normEps);
  const q = project(context, index, "query", normed, packed.positions);
  const k = project(context, index, "key", normed, packed.positions);
  const v = project(context, index, "value", normed, packed.positions);
  packed.onKeysValues?.(k, v);
  const times = config.heads / config.kvHeads;
  const keys = repeatHeads(k, times);
  const values = repeatHeads(v, times);
  const attended = attention(q, keys, values, packed.masks, attentionScale(config));
  return mergeHeads(attended, x.shape[0]!);
}

export function attentionScale(config: ModelConfig): number {
  return 1 / Math.sqrt(config.headSize);
}

/** Queries, keys or values [rows, heads, length, headSize] of normed x [tokens, hiddenSize]. */
export function project(
  context: Context,
  index: number,
  which: "query" | "key" | "value",
  x: Tensor,
  positions: Tensor,
): Tensor {
  const { config, weights } = context;
  const names = layerNames(index);
  const heads = which === "query" ? config.heads : config.kvHeads;
  const [rows, length] = positions.shape as readonly [Dimension, Dimension];
  const plain = projected(context, names[which], x);
  const biased = config.qkvBias ? add(plain, weight(weights, names[`${which}Bias`])) : plain;
  const flat = reshape(biased, [rows, length, heads * config.headSize]);
  const placed = which === "value" ? flat : rotate(flat, positions, context.tables, heads);
  return transpose(reshape(placed, [rows, length, heads, config.headSize]), [0, 2, 1, 3]);
}

/** [rows, heads, length, size] back to [tokens, heads · size]. */
export function mergeHeads(x: Tensor, tokens: Dimension): Tensor {
  const [, heads, , size] = x.shape as readonly [Dimension, number, Dimension, number];
  return reshape(transpose(x, [0, 2, 1, 3]), [tokens, heads * size]);
}

/** The rest of a layer after attention: output projection and MLP, each with its residual. */
export function finishLayer(context: Context, index: number, x: Tensor, attended: Tensor): Tensor {
  const { config, weights } = context;
  const names = layerNames(index);
  const middle = add(x, projected(context, names.attentionOutput, attended));
  const normed = rmsNorm(middle, weight(weights, names.mlpNorm), config.normEps);
  const gated = swiglu(
    projected(context, names.gate, normed),
    projected(context, names.up, normed),
  );
  return add(middle, projected(context, names.down, gated));
}

/** The final norm, before the heads. */
export function finish(context: Context, x: Tensor): Tensor {
  return rmsNorm(x, weight(context.weights, FINAL_NORM), context.config.normEps);
}

/** The output projection, which may be the embedding itself. */
export function outputWeight({ config, weights }: Context): Tensor {
  return weight(weights, config.tiedEmbeddings ? EMBEDDING : OUTPUT_HEAD);
}

/** The critic's value [n, 1] of the final hidden states. */
export function criticValue(context: Context, hidden: Tensor): Tensor {
  return linear(hidden, weight(context.weights, VALUE_HEAD));
}

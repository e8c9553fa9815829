/**
 * The model, defined once: a decoder-only transformer, from Llama to what its relatives change.
 *
 * Training, scoring, prefill and decode are built from the same pieces. They differ only in which
 * positions they compute and where keys and values come from.
 */

import { adaptedTensors, type LoraOptions, loraScale } from "@pawl/models/weights/lora.js";
import {
  isRotated,
  type ModelConfig,
  windowOf,
  windowsOf,
} from "@pawl/models/weights/model-config.js";
import {
  EMBEDDING,
  FINAL_NORM,
  layerNames,
  OUTPUT_HEAD,
  type TensorSpec,
  tensorSpecs,
  VALUE_HEAD,
} from "@pawl/models/weights/tensor-names.js";
import {
  addInput,
  addStored,
  type Dimension,
  floatConstant,
  type Graph,
  type Tensor,
} from "./graph.js";
import { attention, geglu, type RotaryTables, rmsNorm, rotate, swiglu } from "./layers.js";
import {
  add,
  linear,
  lookup,
  type MergedAdapter,
  multiply,
  repeatHeads,
  reshape,
  transpose,
} from "./ops.js";
import { type SharedMasks, sharedAttention } from "./prefix-attention.js";

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
export function declareTables(
  graph: Graph,
  config: ModelConfig,
): Pick<Context, "tables" | "windowTables"> {
  const declare = (name: string) =>
    addInput(graph, name, "float32", ["table", config.headSize / 2]);
  const tables = { cos: declare("cos"), sin: declare("sin") };
  if (config.slidingWindow?.ropeTheta === undefined) return { tables };
  return { tables, windowTables: { cos: declare("windowCos"), sin: declare("windowSin") } };
}

/** A weight by name. */
function weight(weights: Weights, name: string): Tensor {
  const tensor = weights.get(name);
  if (tensor === undefined) throw new Error(`the graph has no weight ${name}`);
  return tensor;
}

/** Everything the layers need besides the tokens. */
export interface Context {
  readonly config: ModelConfig;
  readonly weights: Weights;
  readonly tables: RotaryTables;
  /** Those of layers with a sliding window, if they are others. */
  readonly windowTables?: RotaryTables;
  /** The adapters that are merged into weights and are trained in their place, by weight. */
  readonly adapters?: ReadonlyMap<string, MergedAdapter>;
}

/** A projection of x by the name of its weight. */
function projected({ weights, adapters }: Context, name: string, x: Tensor): Tensor {
  return linear(x, weight(weights, name), adapters?.get(name));
}

/** The embedding of ids [tokens]. */
export function embed({ config, weights }: Context, ids: Tensor): Tensor {
  const rows = lookup(weight(weights, EMBEDDING), ids);
  if (!config.scaledEmbeddings) return rows;
  return multiply(rows, floatConstant(rows.graph, Math.sqrt(config.hiddenSize)));
}

/** RMSNorm of x [n, size] with the weight of that name. */
function norm({ config, weights }: Context, name: string, x: Tensor): Tensor {
  const stored = weight(weights, name);
  const factor = config.normsPlusOne ? add(stored, floatConstant(stored.graph, 1)) : stored;
  return rmsNorm(x, factor, config.normEps);
}

/** What a layer's queries, keys and values are computed from. */
export function attentionInput(context: Context, index: number, x: Tensor): Tensor {
  return norm(context, layerNames(index).attentionNorm, x);
}

/** What layers share if they see as many tokens as one another, such as masks; by layer. */
export function byWindow<T>(
  config: ModelConfig,
  make: (window: number | undefined) => T,
): (layer: number) => T {
  const made = new Map(windowsOf(config).map((window) => [window, make(window)]));
  return (layer) => made.get(windowOf(config, layer))!;
}

/** A batch of packed rows inside a graph. */
export interface PackedRows {
  /** [rows, length] */
  readonly positions: Tensor;
  /** One for each block of queries, as `attention` takes them; others where rows share prefixes. */
  readonly masks: readonly Tensor[] | SharedMasks;
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
  const normed = attentionInput(context, index, x);
  const q = project(context, index, "query", normed, packed.positions);
  const k = project(context, index, "key", normed, packed.positions);
  const v = project(context, index, "value", normed, packed.positions);
  packed.onKeysValues?.(k, v);
  const times = config.heads / config.kvHeads;
  const keys = repeatHeads(k, times);
  const values = repeatHeads(v, times);
  const { masks } = packed;
  const scale = attentionScale(config);
  const attended =
    "own" in masks
      ? sharedAttention(q, keys, values, masks, scale)
      : attention(q, keys, values, masks, scale);
  return mergeHeads(attended, x.shape[0]!);
}

export function attentionScale(config: ModelConfig): number {
  return 1 / Math.sqrt(config.queryScalar ?? config.headSize);
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
  const normed =
    config.qkNorms && which !== "value" ? normHeads(context, index, which, biased) : biased;
  const flat = reshape(normed, [rows, length, heads * config.headSize]);
  const placed =
    which === "value" || !isRotated(config, index)
      ? flat
      : rotate(flat, positions, tablesOf(context, index), heads);
  return transpose(reshape(placed, [rows, length, heads, config.headSize]), [0, 2, 1, 3]);
}

function tablesOf({ config, tables, windowTables }: Context, index: number): RotaryTables {
  return config.slidingWindow?.layers.includes(index) ? (windowTables ?? tables) : tables;
}

/** The norm of every head of queries or keys [tokens, heads · headSize]. */
function normHeads(context: Context, index: number, which: "query" | "key", x: Tensor): Tensor {
  const heads = reshape(x, [`${which} heads`, context.config.headSize]);
  return reshape(norm(context, layerNames(index)[`${which}Norm`], heads), x.shape);
}

/** [rows, heads, length, size] back to [tokens, heads · size]. */
function mergeHeads(x: Tensor, tokens: Dimension): Tensor {
  const [, heads, , size] = x.shape as readonly [Dimension, number, Dimension, number];
  return reshape(transpose(x, [0, 2, 1, 3]), [tokens, heads * size]);
}

/** The rest of a layer after attention: output projection and MLP, each with its residual. */
export function finishLayer(context: Context, index: number, x: Tensor, attended: Tensor): Tensor {
  const { config } = context;
  const names = layerNames(index, config);
  const addTo = (residual: Tensor, y: Tensor, name: string) =>
    add(residual, config.outputNorms ? norm(context, name, y) : y);
  const fromAttention = projected(context, names.attentionOutput, attended);
  const middle = addTo(x, fromAttention, names.attentionOutputNorm);
  const normed = norm(context, names.mlpNorm, middle);
  const gated = (config.gelu ? geglu : swiglu)(
    projected(context, names.gate, normed),
    projected(context, names.up, normed),
  );
  return addTo(middle, projected(context, names.down, gated), names.mlpOutputNorm);
}

/** The final norm, before the heads. */
export function finish(context: Context, x: Tensor): Tensor {
  return norm(context, FINAL_NORM, x);
}

/** The output projection, which may be the embedding itself. */
export function outputWeight({ config, weights }: Context): Tensor {
  return weight(weights, config.tiedEmbeddings ? EMBEDDING : OUTPUT_HEAD);
}

/** The critic's value [n, 1] of the final hidden states. */
export function criticValue(context: Context, hidden: Tensor): Tensor {
  return linear(hidden, weight(context.weights, VALUE_HEAD));
}

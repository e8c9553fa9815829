/** The graphs the engine runs over packed rows: scoring, and one training pass with its objective. */
import { type Objective, QUANTITIES, type Quantity } from "@pawl/core/objectives/expression.js";
import { inputsOf } from "@pawl/core/objectives/expression-interpret.js";
import type { LoraOptions } from "@pawl/models/weights/lora.js";
import type { ModelConfig } from "@pawl/models/weights/model-config.js";
import { VALUE_HEAD } from "@pawl/models/weights/tensor-names.js";
import { differentiate } from "./gradients.js";
import { addInput, createGraph, type Graph, type Tensor } from "./graph.js";
import { blockMasks, predict } from "./layers.js";
import { compileObjective, type Quantities, quantitiesRead } from "./objective-graph.js";
import { encodeModel } from "./onnx.js";
import { cast, gather } from "./operators.js";
import { multiply, nonZeroRows, selectRows } from "./ops.js";
import { sharedMasks } from "./prefix-attention.js";
import { finishGraph, MAX_PLANNED_NODES } from "./scan.js";
import {
  attend,
  byWindow,
  type Context,
  criticValue,
  declareAdapters,
  declareTables,
  declareWeights,
  embed,
  finish,
  finishLayer,
  layer,
  outputWeight,
  type PackedRows,
} from "./transformer.js";

/** A compiled graph: its model file, and the tensor name of each result. */
export interface Program {
  readonly model: Uint8Array;
  readonly results: ReadonlyMap<string, string>;
  /** A pass through many layers and back, which needs much memory while it runs. */
  readonly isLarge: boolean;
}

/** Encodes a graph with its results. */
export function finishProgram(graph: Graph, results: ReadonlyMap<string, Tensor>): Program {
  const finished = finishGraph(graph, [...results.values()]);
  return {
    model: encodeModel(finished),
    isLarge: finished.nodes.length > MAX_PLANNED_NODES,
    results: new Map([...results].map(([name, tensor]) => [name, tensor.name])),
  };
}

/** Name of the gradient of a weight among a training graph's results. */
export function gradientName(weight: string): string {
  return `gradient:${weight}`;
}

/** Name of the sum of a weight's gradients so far among a training graph's inputs. */
export function sumName(weight: string): string {
  return `sum:${weight}`;
}

/** Name of an objective's per-token constant among a training graph's inputs. */
export function inputName(name: string): string {
  return `input:${name}`;
}

/** Name of an objective's metric among a training graph's results. */
export function metricName(name: string): string {
  return `metric:${name}`;
}

/** Those of the named weights that a training pass with this objective involves. */
export function involvedWeights(names: readonly string[], objective: Objective): readonly string[] {
  const values = quantitiesRead(objective).includes("value");
  return names.filter((name) => values || name !== VALUE_HEAD);
}

/** Parameters of a graph besides what it computes. */
export interface MicroBatchShape {
  /** The number of blocks that attention splits rows into. */
  readonly blocks: number;
  /**
   * Targets have inverse temperatures, as another input; without them their logits are not scaled.
   */
  readonly tempered: boolean;
  /** Targets have masks, as two more inputs: the masks, and which of them is whose. */
  readonly masked: boolean;
  /** Rows hold a prefix and several suffixes; they are not split into blocks. */
  readonly shared?: boolean;
}

/** Name of the targets' inverse temperatures among a graph's inputs. */
export const INVERSE_TEMPERATURES = "inverseTemperatures";
/** Names of the masks among a graph's inputs, and of each target's number of its mask. */
export const MASKS = "masks";
export const MASK_NUMBERS = "maskNumbers";

/**
 * Scores the rows of a micro-batch: log-probabilities of the targets and the other requested
 * quantities.
 */
export function forwardProgram(
  config: ModelConfig,
  quantities: readonly Quantity[],
  shape: MicroBatchShape,
): Program {
  const graph = createGraph();
  const context = declareContext(graph, config, quantities.includes("value"));
  const packed = declarePacked(graph, shape);
  const columns = score(
    context,
    readTokens(context, packed),
    declareTargets(graph, config, packed, shape),
    quantities,
  );
  return finishProgram(graph, new Map(quantities.map((name) => [name, columns[name]!])));
}

/** One forward and backward pass over a micro-batch with an objective; gradients are added to the sums so far. */
export function trainingProgram(
  config: ModelConfig,
  objective: Objective,
  shape: MicroBatchShape,
  lora?: LoraOptions,
): Program {
  const graph = createGraph();
  const read = new Set<Quantity>(["logprob", ...quantitiesRead(objective)]);
  const quantities = QUANTITIES.filter((quantity) => read.has(quantity));
  const context = declareContext(graph, config, quantities.includes("value"), lora);
  const packed = declarePacked(graph, shape);
  const names = inputsOf(objective.loss, ...Object.values(objective.metrics));
  const inputs = new Map(
    names.map((name) => [name, addInput(graph, inputName(name), "float32", ["targets", 1])]),
  );
  const weights = trainedTensors(context);
  const sums = weights.map((weight) =>
    addInput(graph, sumName(weight.name), "float32", weight.shape),
  );
  const states = readTokens(context, packed);
  const targets = declareTargets(graph, config, packed, shape);
  const columns = score(context, states, targets, quantities);
  const compiled = compileObjective(objective, columns, inputs);
  const gradients = differentiate(
    graph,
    objective.sparse
      ? sparseSeeds(context, states, targets, compiled.seeds)
      : new Map([...compiled.seeds].map(([name, seed]) => [columns[name]!, seed])),
    new Map(weights.map((weight, i) => [weight, sums[i]!])),
  );
  return finishProgram(
    graph,
    new Map([
      ["logprob", columns.logprob],
      ["loss", compiled.loss],
      ...Object.keys(objective.metrics).map(
        (name, i) => [metricName(name), compiled.metrics[i]!] as const,
      ),
      ...weights.map((weight) => [gradientName(weight.name), gradients.get(weight)!] as const),
    ]),
  );
}

function declareContext(
  graph: Graph,
  config: ModelConfig,
  valueHead: boolean,
  lora?: LoraOptions,
): Context {
  return {
    config,
    weights: declareWeights(graph, config, valueHead),
    ...declareTables(graph, config),
    adapters: lora && declareAdapters(graph, config, lora),
  };
}

/** The weights whose gradients are wanted: with adapters, theirs and the value head's. */
function trainedTensors({ weights, adapters }: Context): readonly Tensor[] {
  if (adapters === undefined) return [...weights.values()];
  const valueHead = weights.get(VALUE_HEAD);
  return [
    ...[...adapters.values()].flatMap(({ down, up }) => [down, up]),
    ...(valueHead === undefined ? [] : [valueHead]),
  ];
}

/** A micro-batch's rows as graph inputs. */
interface Packed {
  /** [tokens] */
  readonly ids: Tensor;
  /** [rows, length]: position of each token in its own sequence. */
  readonly positions: Tensor;
  /** The masks of layers with such a window, or without. */
  masks(window: number | undefined): PackedRows["masks"];
  /** [targets]: the flat index of the token that predicts each target. */
  readonly predictors: Tensor;
  /** [targets, 1] */
  readonly targets: Tensor;
  /** Whether a token may predict several targets. */
  readonly shared: boolean;
}

function declarePacked(graph: Graph, { blocks, shared = false }: MicroBatchShape): Packed {
  const declare = (name: string, ...shape: (string | number)[]) =>
    addInput(graph, name, "int32", shape);
  const [ids, positions] = [declare("ids", "tokens"), declare("positions", "rows", "length")];
  const masksOf = (): Packed["masks"] => {
    if (!shared) {
      const places = declare("places", 1, "length");
      return (window) => blockMasks(places, blocks, window);
    }
    const places = {
      prefix: declare("prefixPlaces", "rows", "prefix"),
      suffixes: declare("suffixPlaces", "rows", "suffixes"),
      own: declare("ownPlaces", 1, "suffix"),
    };
    return (window) => sharedMasks(places, window);
  };
  return {
    ids,
    positions,
    masks: masksOf(),
    predictors: declare("predictors", "targets"),
    targets: declare("targets", "targets", 1),
    shared,
  };
}

/** The state of every token after the last layer's attention: all that a target depends on. */
interface States {
  /** [tokens, hiddenSize] */
  readonly x: Tensor;
  /** [tokens, heads · headSize] */
  readonly attended: Tensor;
}

function readTokens(context: Context, packed: Packed): States {
  const positions = cast(packed.positions, "int64");
  const masks = byWindow(context.config, packed.masks);
  const rows = (index: number) => ({ positions, masks: masks(index) });
  const last = context.config.layers - 1;
  let x = embed(context, packed.ids);
  for (let index = 0; index < last; index++) x = layer(context, index, x, rows(index));
  return { x, attended: attend(context, last, x, rows(last)) };
}

/** Targets, and the tokens that predict them. */
interface Targets {
  /** [targets] */
  readonly predictors: Tensor;
  /** [targets, 1] */
  readonly ids: Tensor;
  /** [targets, 1]: the factor of their logits (default: 1). */
  readonly inverseTemperatures?: Tensor;
  /** Whether predictors may repeat. */
  readonly repeated: boolean;
  /** Masks [masks, vocabulary], and the number [targets] of each target's. */
  readonly masks?: { readonly table: Tensor; readonly numbers: Tensor };
}

function declareTargets(
  graph: Graph,
  { vocabularySize }: ModelConfig,
  { predictors, targets, shared: repeated }: Packed,
  { tempered, masked }: MicroBatchShape,
): Targets {
  return {
    ...{ predictors: cast(predictors, "int64"), ids: targets, repeated },
    ...(tempered && {
      inverseTemperatures: addInput(graph, INVERSE_TEMPERATURES, "float32", ["targets", 1]),
    }),
    ...(masked && {
      masks: {
        table: addInput(graph, MASKS, "bool", ["masks", vocabularySize]),
        numbers: addInput(graph, MASK_NUMBERS, "int32", ["targets"]),
      },
    }),
  };
}

/**
 * The requested quantities of some targets, as columns: the last layer is finished only for these.
 */
function score(
  context: Context,
  { x, attended }: States,
  { predictors, ids, inverseTemperatures, repeated, masks }: Targets,
  quantities: readonly Quantity[],
): Quantities {
  const last = context.config.layers - 1;
  const rows = [x, attended].map((tensor) => selectRows(tensor, predictors, { repeated }));
  const hidden = finish(context, finishLayer(context, last, rows[0]!, rows[1]!));
  // Logits are linear in the hidden states, which are much narrower, so we scale those.
  const scaled = inverseTemperatures === undefined ? hidden : multiply(hidden, inverseTemperatures);
  return {
    ...predict(scaled, outputWeight(context), ids, {
      entropy: quantities.includes("entropy"),
      allowed: masks && gather(masks.table, masks.numbers),
    }),
    value: quantities.includes("value") ? criticValue(context, hidden) : undefined,
  };
}

/**
 * Where the backward pass starts if many targets have no gradient: those with one are scored again,
 * so that nothing is computed backwards for the others.
 */
function sparseSeeds(
  context: Context,
  states: States,
  targets: Targets,
  seeds: ReadonlyMap<Quantity, Tensor>,
): ReadonlyMap<Tensor, Tensor> {
  const rows = nonZeroRows([...seeds.values()]);
  const some = {
    predictors: gather(targets.predictors, rows),
    ids: gather(targets.ids, rows),
    repeated: targets.repeated,
    ...(targets.inverseTemperatures && {
      inverseTemperatures: gather(targets.inverseTemperatures, rows),
    }),
    ...(targets.masks && {
      masks: { ...targets.masks, numbers: gather(targets.masks.numbers, rows) },
    }),
  };
  const columns = score(context, states, some, [...seeds.keys()]);
  return new Map([...seeds].map(([name, seed]) => [columns[name]!, gather(seed, rows)] as const));
}

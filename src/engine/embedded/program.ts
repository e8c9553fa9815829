/** The graphs the engine runs over packed rows: scoring, and one training pass with its objective. */
import { type Objective, QUANTITIES, type Quantity } from "../../objectives/expression.js";
import { inputsOf } from "../../objectives/expression-interpret.js";
import type { ModelConfig } from "../weights/model-config.js";
import { VALUE_HEAD } from "../weights/tensor-names.js";
import { differentiate } from "./gradients.js";
import { addInput, createGraph, type Graph, type Tensor } from "./graph.js";
import { blockMasks, predict } from "./layers.js";
import { compileObjective, type Quantities, quantitiesRead } from "./objective-graph.js";
import { encodeModel } from "./onnx.js";
import { asInt64 } from "./ops.js";
import { finishGraph } from "./scan.js";
import {
  type Context,
  criticValue,
  declareTables,
  declareWeights,
  embed,
  finish,
  layer,
  outputWeight,
} from "./transformer.js";

/** A compiled graph: its model file, and under which tensor name each result is found. */
export interface Program {
  readonly model: Uint8Array;
  readonly results: ReadonlyMap<string, string>;
}

/** Encodes a graph with its results. */
export function finishProgram(graph: Graph, results: ReadonlyMap<string, Tensor>): Program {
  return {
    model: encodeModel(finishGraph(graph, [...results.values()])),
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

/** The weights a training pass with this objective changes. */
export function trainedWeights(names: readonly string[], objective: Objective): readonly string[] {
  const values = quantitiesRead(objective).includes("value");
  return names.filter((name) => values || name !== VALUE_HEAD);
}

/** Scores the rows of a step, attending in so many blocks: log-probabilities of the targets and what else is asked for. */
export function forwardProgram(
  config: ModelConfig,
  quantities: readonly Quantity[],
  blocks: number,
): Program {
  const graph = createGraph();
  const context = declareContext(graph, config, quantities.includes("value"));
  const columns = score(context, declarePacked(graph), quantities, blocks);
  return finishProgram(graph, new Map(quantities.map((name) => [name, columns[name]!])));
}

/** One forward and backward pass over a step with an objective; gradients are added to the sums so far. */
export function trainingProgram(
  config: ModelConfig,
  objective: Objective,
  blocks: number,
): Program {
  const graph = createGraph();
  const read = new Set<Quantity>(["logprob", ...quantitiesRead(objective)]);
  const quantities = QUANTITIES.filter((quantity) => read.has(quantity));
  const context = declareContext(graph, config, quantities.includes("value"));
  const packed = declarePacked(graph);
  const names = inputsOf(objective.loss, ...Object.values(objective.metrics));
  const inputs = new Map(
    names.map((name) => [name, addInput(graph, inputName(name), "float32", ["targets", 1])]),
  );
  const weights = [...context.weights.values()];
  const sums = weights.map((weight) =>
    addInput(graph, sumName(weight.name), "float32", weight.shape),
  );
  const columns = score(context, packed, quantities, blocks);
  const compiled = compileObjective(objective, columns, inputs);
  const gradients = differentiate(
    graph,
    new Map([...compiled.seeds].map(([name, seed]) => [columns[name]!, seed])),
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

function declareContext(graph: Graph, config: ModelConfig, valueHead: boolean): Context {
  return {
    config,
    weights: declareWeights(graph, config, valueHead),
    tables: declareTables(graph, config),
  };
}

/** A step's rows as graph inputs. */
interface Packed {
  /** [tokens] */
  readonly ids: Tensor;
  /** [rows, length]: position of each token in its own sequence. */
  readonly positions: Tensor;
  /** [1, length]: the same for any row. */
  readonly places: Tensor;
  /** [targets]: the flat index of the token that predicts each target. */
  readonly predictors: Tensor;
  /** [targets, 1] */
  readonly targets: Tensor;
}

function declarePacked(graph: Graph): Packed {
  const declare = (name: string, ...shape: (string | number)[]) =>
    addInput(graph, name, "int32", shape);
  return {
    ids: declare("ids", "tokens"),
    positions: declare("positions", "rows", "length"),
    places: declare("places", 1, "length"),
    predictors: declare("predictors", "targets"),
    targets: declare("targets", "targets", 1),
  };
}

/** The wanted quantities of every target, as columns. */
function score(
  context: Context,
  packed: Packed,
  quantities: readonly Quantity[],
  blocks: number,
): Quantities {
  const positions = asInt64(packed.positions);
  const masks = blockMasks(packed.places, blocks);
  const last = context.config.layers - 1;
  let x = embed(context, packed.ids);
  for (let index = 0; index < last; index++) x = layer(context, index, x, { positions, masks });
  const hidden = finish(
    context,
    layer(context, last, x, { positions, masks }, asInt64(packed.predictors)),
  );
  return {
    ...predict(hidden, outputWeight(context), packed.targets, {
      entropy: quantities.includes("entropy"),
    }),
    ...(quantities.includes("value") ? { value: criticValue(context, hidden) } : {}),
  };
}

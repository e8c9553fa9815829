/** Scans: a graph body repeated over the first axis of its inputs, with states carried from item to item. */
import { addInput, createGraph, freshName, type Graph, type Tensor } from "./graph.js";
import type { OnnxGraph, OnnxNode, OnnxValue } from "./onnx.js";
import { unary } from "./operators.js";

/** The results of a scan's body for one item. */
export interface ScanResult {
  /** The states after this item, in the given order. */
  readonly states: readonly Tensor[];
  /** Collected over all items along a new first axis. */
  readonly outputs: readonly Tensor[];
}

/**
 * Appends a scan over items [n, …]; n may be known only when the graph runs.
 *
 * One run over many small items keeps every activation in the processor's cache; one large batch
 * would stream all of them through memory.
 */
export function scan(
  graph: Graph,
  states: readonly Tensor[],
  items: readonly Tensor[],
  build: (body: Graph, states: readonly Tensor[], items: readonly Tensor[]) => ScanResult,
): ScanResult {
  const body = createGraph(graph);
  const declare = (tensor: Tensor, leading: number) =>
    addInput(body, freshName(body, tensor.name), tensor.type, tensor.shape.slice(leading));
  const bodyStates = states.map((tensor) => declare(tensor, 0));
  const bodyItems = items.map((tensor) => declare(tensor, 1));
  const made = build(body, bodyStates, bodyItems);
  // A body cannot return its own input unchanged.
  const next = made.states.map((tensor) =>
    body.inputs.includes(tensor) ? unary("Identity", tensor) : tensor,
  );
  const count = items[0]!.shape[0]!;
  const results = [
    ...next.map((tensor) => ({ ...tensor, graph, name: freshName(graph, "state") })),
    ...made.outputs.map((tensor) => ({
      ...tensor,
      graph,
      name: freshName(graph, "collected"),
      shape: [count, ...tensor.shape],
    })),
  ];
  graph.nodes.push({
    op: "Scan",
    domain: "",
    inputs: [...states, ...items].map((tensor) => tensor.name),
    outputs: results.map((tensor) => tensor.name),
    attributes: {
      body: { graph: finishGraph(body, [...next, ...made.outputs]) },
      num_scan_inputs: { int: items.length },
    },
  });
  return { states: results.slice(0, states.length), outputs: results.slice(states.length) };
}

/**
 * ONNX Runtime plans which tensors share memory by comparing shapes pair by pair, in a time that
 * grows with the square of their number: 12 seconds of processor time for 30 layers. In graphs with
 * more nodes than this, shapes are left open, and memory is shared as it is freed.
 */
export const MAX_PLANNED_NODES = 1500;

/** The graph in the form that is written to a model, with the given tensors as its results. */
export function finishGraph(graph: Graph, outputs: readonly Tensor[]): OnnxGraph {
  const nodes = neededNodes(graph.nodes, outputs);
  const isPlanned = nodes.length <= MAX_PLANNED_NODES;
  const describe = (tensor: Tensor) => describeValue(tensor, isPlanned);
  return {
    name: `graph_${graph.depth}`,
    nodes,
    inputs: graph.inputs.map(describe),
    outputs: outputs.map(describe),
    constants: [...graph.constants.values()].map((constant) => constant.stored),
  };
}

/** The nodes that the outputs depend on: gradients that nobody asked for are not computed. */
function neededNodes(nodes: readonly OnnxNode[], outputs: readonly Tensor[]): readonly OnnxNode[] {
  const needed = new Set(outputs.map(({ name }) => name));
  const kept: OnnxNode[] = [];
  for (const node of [...nodes].reverse()) {
    if (!node.outputs.some((name) => needed.has(name))) continue;
    for (const name of inputsOf(node)) needed.add(name);
    kept.push(node);
  }
  return kept.reverse();
}

/** What a node reads; the body of a scan may read any tensor of the graph around it. */
function inputsOf(node: OnnxNode): readonly string[] {
  const bodies = Object.values(node.attributes).flatMap((value) =>
    "graph" in value ? [value.graph] : [],
  );
  return [
    ...node.inputs,
    ...bodies.flatMap(({ nodes, outputs }) => [
      ...nodes.flatMap(inputsOf),
      ...outputs.map(({ name }) => name),
    ]),
  ];
}

function describeValue({ name, type, shape }: Tensor, isPlanned: boolean): OnnxValue {
  const isFixed = shape.every((size) => typeof size === "number");
  return { name, type, shape: isPlanned || isFixed ? shape : undefined };
}

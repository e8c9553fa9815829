/**
 * A tensor graph under construction: ONNX operators with shapes, and the record needed to
 * differentiate it.
 *
 * A dimension is a number, or a name if the size is known only when the graph runs, so that one
 * compiled graph serves every batch. Bodies of scans are graphs of their own that may use the
 * tensors of the graph around them.
 */
import type { Attribute, ElementType, OnnxConstant, OnnxNode } from "./onnx.js";

export type Dimension = number | string;
export type Shape = readonly Dimension[];

/** A value in a graph. */
export interface Tensor {
  readonly graph: Graph;
  readonly name: string;
  readonly type: ElementType;
  readonly shape: Shape;
}

/** Collects the gradients of operations' inputs. */
export interface Gradients {
  /** Whether the gradient of this tensor is needed; if not, it is not computed. */
  wants(tensor: Tensor): boolean;
  add(tensor: Tensor, gradient: Tensor): void;
  /** Adds aᵀ b, for a [n, rows] and b [n, columns], in a single matrix product. */
  addProduct(tensor: Tensor, a: Tensor, b: Tensor): void;
  /** Adds rows [n, columns] to the rows of the tensor's gradient that `ids` [n] names. */
  addRows(tensor: Tensor, ids: Tensor, rows: Tensor): void;
}

/** A differentiable operation, which may consist of several ONNX operators. */
export interface Operation {
  readonly inputs: readonly Tensor[];
  readonly outputs: readonly Tensor[];
  /** Adds its share to the gradients of its inputs, given those of its outputs (missing: zero). */
  readonly backward: (gradients: Gradients, ...outputs: readonly (Tensor | undefined)[]) => void;
}

/** Operators in order of execution. Grows while it is built; finished by `encodeGraph`. */
export interface Graph {
  readonly parent: Graph | undefined;
  readonly depth: number;
  readonly nodes: OnnxNode[];
  readonly constants: Map<string, { readonly tensor: Tensor; readonly stored: OnnxConstant }>;
  readonly inputs: Tensor[];
  /** Differentiable operations, in order of execution. */
  readonly operations: Operation[];
  /** For each named dimension, the tensor and axis that give its size when the graph runs. */
  readonly sizes: Map<string, { readonly tensor: Tensor; readonly axis: number }>;
  /** Shared with nested bodies, because names must be unique across all of them. */
  readonly counter: { next: number };
}

/** An empty graph; with a parent, it is the body of one of the parent's scans. */
export function createGraph(parent?: Graph): Graph {
  return {
    parent,
    depth: parent === undefined ? 0 : parent.depth + 1,
    nodes: [],
    constants: new Map(),
    inputs: [],
    operations: [],
    sizes: new Map(parent?.sizes ?? []),
    counter: parent?.counter ?? { next: 0 },
  };
}

/** Declares a graph input, which defines its named dimensions. */
export function addInput(graph: Graph, name: string, type: ElementType, shape: Shape): Tensor {
  const tensor: Tensor = { graph, name, type, shape };
  graph.inputs.push(tensor);
  shape.forEach((size, axis) => {
    if (typeof size === "string" && !graph.sizes.has(size)) graph.sizes.set(size, { tensor, axis });
  });
  return tensor;
}

/** An operator's name, and the types and shapes of its outputs. */
export interface Emission {
  readonly op: string;
  readonly domain?: "com.microsoft";
  readonly inputs: readonly Tensor[];
  readonly attributes?: Readonly<Record<string, Attribute>>;
  readonly shape: Shape;
  readonly type?: ElementType;
  /** Shapes of outputs after the first. */
  readonly more?: readonly Shape[];
  /** The graph to put it in, if its inputs do not determine it. */
  readonly graph?: Graph;
}

/** Appends an operator to the innermost graph of its inputs and returns its first output. */
export function emit(emission: Emission): Tensor {
  return emitAll(emission)[0]!;
}

/** Appends an operator and returns all its outputs. */
export function emitAll(emission: Emission): readonly Tensor[] {
  const graph = innermost(emission.inputs, emission.graph);
  const type = emission.type ?? "float32";
  const outputs = [emission.shape, ...(emission.more ?? [])].map(
    (shape): Tensor => ({ graph, name: freshName(graph, emission.op), type, shape }),
  );
  graph.nodes.push({
    op: emission.op,
    domain: emission.domain ?? "",
    inputs: emission.inputs.map((tensor) => tensor.name),
    outputs: outputs.map((tensor) => tensor.name),
    attributes: emission.attributes ?? {},
  });
  return outputs;
}

/** Records how to differentiate something that was just emitted. */
export function record(operation: Operation): void {
  const graph = innermost([...operation.outputs, ...operation.inputs]);
  graph.operations.push(operation);
}

/** A name that no other tensor of the graph has. */
export function freshName(graph: Graph, hint: string): string {
  graph.counter.next += 1;
  return `${hint}_${graph.counter.next}`;
}

/** A 32-bit float constant that broadcasts against anything. */
export function floatConstant(graph: Graph, value: number): Tensor {
  return constant(graph, "float32", [], new Uint8Array(Float32Array.of(value).buffer));
}

/** A constant vector of floats. */
export function floatVector(graph: Graph, values: ArrayLike<number>): Tensor {
  return constant(
    graph,
    "float32",
    [values.length],
    new Uint8Array(Float32Array.from(values).buffer),
  );
}

/** A constant vector of integers: axes, shapes, indices. */
export function intVector(graph: Graph, values: readonly number[]): Tensor {
  const data = BigInt64Array.from(values, (value) => BigInt(value));
  return constant(graph, "int64", [values.length], new Uint8Array(data.buffer));
}

/**
 * Numbers stored in the model under a name; products with them are optimised when it is compiled.
 */
export function addStored(
  graph: Graph,
  name: string,
  shape: readonly number[],
  data: Float32Array,
): Tensor {
  const tensor: Tensor = { graph, name, type: "float32", shape };
  const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  graph.constants.set(name, { tensor, stored: { name, type: "float32", shape, data: bytes } });
  return tensor;
}

function constant(
  graph: Graph,
  type: ElementType,
  shape: readonly number[],
  data: Uint8Array,
): Tensor {
  const key = `${type} ${shape} ${Buffer.from(data).toString("base64")}`;
  const stored = graph.constants.get(key);
  if (stored !== undefined) return stored.tensor;
  const name = freshName(graph, "constant");
  const tensor: Tensor = { graph, name, type, shape };
  graph.constants.set(key, { tensor, stored: { name, type, shape, data } });
  return tensor;
}

/** A shape as a tensor: constant if possible, assembled from run-time sizes otherwise. */
export function shapeTensor(graph: Graph, shape: Shape): Tensor {
  const named = shape.filter((size) => typeof size === "string");
  if (named.length <= 1)
    return intVector(
      graph,
      shape.map((size) => (typeof size === "string" ? -1 : size)),
    );
  // One dimension that no input gives may be left to be inferred.
  const parts = shape.map((size) =>
    typeof size === "number" || !graph.sizes.has(size)
      ? intVector(graph, [typeof size === "number" ? size : -1])
      : runtimeSize(graph, size),
  );
  return emit({
    op: "Concat",
    inputs: parts,
    attributes: { axis: { int: 0 } },
    type: "int64",
    shape: [shape.length],
    graph,
  });
}

function runtimeSize(graph: Graph, dimension: string): Tensor {
  const source = graph.sizes.get(dimension)!;
  return emit({
    op: "Shape",
    inputs: [source.tensor],
    attributes: { start: { int: source.axis }, end: { int: source.axis + 1 } },
    type: "int64",
    shape: [1],
    graph,
  });
}

function innermost(tensors: readonly Tensor[], given?: Graph): Graph {
  const graphs = tensors.map((tensor) => tensor.graph).concat(given ?? []);
  return graphs.reduce((deepest, graph) => (graph.depth > deepest.depth ? graph : deepest));
}

/** The shape of an elementwise result of two operands, by numpy's broadcasting rules. */
export function broadcastShapes(a: Shape, b: Shape): Shape {
  const rank = Math.max(a.length, b.length);
  return Array.from({ length: rank }, (_, i) => {
    const x = a[i - rank + a.length] ?? 1;
    const y = b[i - rank + b.length] ?? 1;
    if (x === y || y === 1) return x;
    if (x === 1) return y;
    throw new Error(`shapes [${a}] and [${b}] do not broadcast`);
  });
}

export function sameShape(a: Shape, b: Shape): boolean {
  return a.length === b.length && a.every((size, i) => size === b[i]);
}

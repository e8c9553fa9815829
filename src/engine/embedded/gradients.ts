/** Reverse-mode differentiation of a graph: walks its operations backwards and sums gradients. */
import {
  emit,
  type Gradients,
  type Graph,
  intVector,
  type Operation,
  type Tensor,
} from "./graph.js";

/**
 * Emits the gradients of Σ output · seed with respect to the given tensors, and returns them.
 *
 * A sum may start from an accumulator; without one, a tensor that does not affect the output has no
 * gradient.
 */
export function differentiate(
  graph: Graph,
  seeds: ReadonlyMap<Tensor, Tensor>,
  accumulators: ReadonlyMap<Tensor, Tensor | undefined>,
): ReadonlyMap<Tensor, Tensor> {
  const sums = new Map<Tensor, Tensor>(seeds);
  for (const [tensor, start] of accumulators) if (start !== undefined) sums.set(tensor, start);
  const wanted = dependents(graph.operations, new Set(accumulators.keys()));
  const gradients: Gradients = {
    wants: (tensor) => wanted.has(tensor),
    add: (tensor, gradient) => {
      if (!wanted.has(tensor)) return;
      const sum = sums.get(tensor);
      sums.set(
        tensor,
        sum === undefined
          ? gradient
          : emit({ op: "Add", inputs: [sum, gradient], shape: tensor.shape }),
      );
    },
    addProduct: (tensor, a, b) => {
      if (!wanted.has(tensor)) return;
      const sum = sums.get(tensor);
      sums.set(tensor, product(tensor, a, b, sum));
    },
    addRows: (tensor, ids, rows) => {
      if (!wanted.has(tensor)) return;
      sums.set(tensor, scatterRows(sums.get(tensor) ?? zerosLike(tensor), ids, rows));
    },
  };
  for (const operation of [...graph.operations].reverse()) {
    if (!operation.inputs.some((tensor) => wanted.has(tensor))) continue;
    const outputs = operation.outputs.map((tensor) => sums.get(tensor));
    if (outputs.some((gradient) => gradient !== undefined))
      operation.backward(gradients, ...outputs);
  }
  return new Map(
    [...accumulators.keys()].flatMap((tensor) => {
      const sum = sums.get(tensor);
      return sum === undefined ? [] : [[tensor, sum] as const];
    }),
  );
}

/** The tensors themselves and everything computed from them. */
function dependents(
  operations: readonly Operation[],
  sources: ReadonlySet<Tensor>,
): ReadonlySet<Tensor> {
  const found = new Set(sources);
  for (const operation of operations)
    if (operation.inputs.some((tensor) => found.has(tensor)))
      for (const output of operation.outputs) found.add(output);
  return found;
}

function product(tensor: Tensor, a: Tensor, b: Tensor, sum: Tensor | undefined): Tensor {
  return emit({
    op: "Gemm",
    inputs: sum === undefined ? [a, b] : [a, b, sum],
    attributes: { transA: { int: 1 } },
    shape: tensor.shape,
  });
}

/** ScatterND would be faster, but it loses sums when two threads write to the same row. */
function scatterRows(sum: Tensor, ids: Tensor, rows: Tensor): Tensor {
  const column = emit({
    op: "Reshape",
    inputs: [ids, intVector(ids.graph, [-1, 1])],
    type: ids.type,
    shape: [ids.shape[0]!, 1],
  });
  const indices = emit({
    op: "Expand",
    inputs: [column, emit({ op: "Shape", inputs: [rows], type: "int64", shape: [2] })],
    type: ids.type,
    shape: rows.shape,
  });
  return emit({
    op: "ScatterElements",
    inputs: [sum, indices, rows],
    attributes: { axis: { int: 0 }, reduction: { string: "add" } },
    shape: sum.shape,
  });
}

/** Zeros in the shape of a tensor. */
function zerosLike(tensor: Tensor): Tensor {
  const shape = emit({
    op: "Shape",
    inputs: [tensor],
    type: "int64",
    shape: [tensor.shape.length],
  });
  return emit({ op: "ConstantOfShape", inputs: [shape], shape: tensor.shape });
}

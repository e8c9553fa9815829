/** Reverse-mode differentiation of a graph: walks its operations backwards and sums gradients. */
import { emit, type Gradients, type Graph, type Operation, type Tensor } from "./graph.js";
import { elementwise, expandTo, reshape, scatterAdd, zerosLike } from "./operators.js";

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
      sums.set(tensor, sum === undefined ? gradient : elementwise("Add", sum, gradient));
    },
    addProduct: (tensor, a, b) => {
      if (!wanted.has(tensor)) return;
      sums.set(tensor, product(tensor, a, b, sums.get(tensor)));
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
  const tensors = new Set(sources);
  for (const { inputs, outputs } of operations)
    if (inputs.some((tensor) => tensors.has(tensor)))
      for (const output of outputs) tensors.add(output);
  return tensors;
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
  return scatterAdd(sum, expandTo(reshape(ids, [ids.shape[0]!, 1]), rows), rows, 0);
}

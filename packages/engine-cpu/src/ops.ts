/** Tensor operations with derivatives: arithmetic, projections, reshaping, gathering. */
import {
  emit,
  floatVector,
  intVector,
  record,
  type Shape,
  sameShape,
  type Tensor,
} from "./graph.js";
import * as operators from "./operators.js";
import { elementwise, fusedMatMul, gather, matMul, unary, zerosLike } from "./operators.js";

/** a + b, broadcasting. */
export function add(a: Tensor, b: Tensor): Tensor {
  const sum = elementwise("Add", a, b);
  record({
    inputs: [a, b],
    outputs: [sum],
    backward: (gradients, gradient) => {
      for (const operand of [a, b])
        if (gradients.wants(operand)) gradients.add(operand, reduceTo(gradient!, operand.shape));
    },
  });
  return sum;
}

/** a · b, elementwise, broadcasting. */
export function multiply(a: Tensor, b: Tensor): Tensor {
  const product = elementwise("Mul", a, b);
  record({
    inputs: [a, b],
    outputs: [product],
    backward: (gradients, gradient) => {
      for (const [operand, other] of [
        [a, b],
        [b, a],
      ] as const)
        if (gradients.wants(operand))
          gradients.add(operand, reduceTo(elementwise("Mul", gradient!, other), operand.shape));
    },
  });
  return product;
}

/** Sums a gradient over the axes along which an operand of the given shape was broadcast. */
function reduceTo(gradient: Tensor, shape: Shape): Tensor {
  if (sameShape(gradient.shape, shape)) return gradient;
  const extra = gradient.shape.length - shape.length;
  const axes = gradient.shape.flatMap((size, axis) =>
    axis < extra || (shape[axis - extra] === 1 && size !== 1) ? [axis] : [],
  );
  const sum = operators.reduce("ReduceSum", gradient, axes);
  return extra === 0 ? sum : operators.reshape(sum, shape);
}

/** The low-rank adapter that is merged into a weight: weight = base + scale · up down. */
export interface MergedAdapter {
  /** [rank, inputs] */
  readonly down: Tensor;
  /** [outputs, rank] */
  readonly up: Tensor;
  readonly scale: number;
}

/** x Wᵀ for x [n, inputs] and a weight [outputs, inputs], as checkpoints store it. */
export function linear(x: Tensor, weight: Tensor, adapter?: MergedAdapter): Tensor {
  const y = fusedMatMul(x, weight, { transB: true });
  record({
    inputs: [x, weight, ...(adapter === undefined ? [] : [adapter.down, adapter.up])],
    outputs: [y],
    backward: (gradients, gradient) => {
      gradients.addProduct(weight, gradient!, x);
      if (adapter !== undefined) {
        const { down, up, scale } = adapter;
        gradients.addProduct(up, gradient!, fusedMatMul(x, down, { transB: true, scale }));
        gradients.addProduct(down, fusedMatMul(gradient!, up, { scale }), x);
      }
      if (gradients.wants(x)) gradients.add(x, matMul(gradient!, weight));
    },
  });
  return y;
}

/** The same numbers in another shape. */
export function reshape(x: Tensor, shape: Shape): Tensor {
  if (sameShape(x.shape, shape)) return x;
  const y = operators.reshape(x, shape);
  record({
    inputs: [x],
    outputs: [y],
    backward: (gradients, gradient) => gradients.add(x, operators.reshape(gradient!, x.shape)),
  });
  return y;
}

/** The axes of x in another order. */
export function transpose(x: Tensor, order: readonly number[]): Tensor {
  const y = operators.transpose(x, order);
  const back = order.map((_, axis) => order.indexOf(axis));
  record({
    inputs: [x],
    outputs: [y],
    backward: (gradients, gradient) => gradients.add(x, operators.transpose(gradient!, back)),
  });
  return y;
}

/** Rows of a table [n, d] by their ids, which may repeat: the embedding. */
export function lookup(table: Tensor, ids: Tensor): Tensor {
  const rows = gather(table, ids);
  record({
    inputs: [table],
    outputs: [rows],
    backward: (gradients, gradient) => gradients.addRows(table, ids, gradient!),
  });
  return rows;
}

/**
 * The rows [n] in which one of the columns [rows, 1] is not zero; always includes the first row, so
 * that there is one.
 */
export function nonZeroRows(columns: readonly Tensor[]): Tensor {
  const [first, ...rest] = columns.map((column) => unary("Abs", column)) as [Tensor, ...Tensor[]];
  const size = rest.reduce((sum, column) => elementwise("Add", sum, column), first);
  const { graph } = size;
  const rows = size.shape[0]!;
  const flat = operators.reshape(size, [rows]);
  const later = emit({
    op: "Slice",
    inputs: [flat, intVector(graph, [1]), intVector(graph, [2 ** 31 - 1])],
    shape: ["later"],
  });
  const marked = operators.concat([floatVector(graph, [1]), later], 0, rows);
  const places = emit({ op: "NonZero", inputs: [marked], type: "int64", shape: [1, "nonZero"] });
  return operators.reshape(places, ["nonZero"]);
}

/** Rows of x [n, d]; unless told so, an index may repeat only if the gradient of its rows is zero. */
export function selectRows(x: Tensor, index: Tensor, { repeated = false } = {}): Tensor {
  const rows = gather(x, index);
  record({
    inputs: [x],
    outputs: [rows],
    backward: (gradients, gradient) => {
      if (!gradients.wants(x)) return;
      if (repeated) return gradients.addRows(x, index, gradient!);
      const inputs = [zerosLike(x), operators.unsqueeze(index, [1]), gradient!];
      gradients.add(x, emit({ op: "ScatterND", inputs, shape: x.shape }));
    },
  });
  return rows;
}

/** Repeats axis 1 of x [rows, heads, …] so that `times` neighbours share one entry. */
export function repeatHeads(x: Tensor, times: number): Tensor {
  if (times === 1) return x;
  const [rows, heads, length, size] = x.shape as readonly [number, number, number, number];
  const wide: Shape = [rows, heads, times, length, size];
  const ones = intVector(x.graph, [1, 1, times, 1, 1]);
  const apart = operators.reshape(x, [rows, heads, 1, length, size]);
  const repeated = emit({ op: "Expand", inputs: [apart, ones], shape: wide });
  const y = operators.reshape(repeated, [rows, heads * times, length, size]);
  record({
    inputs: [x],
    outputs: [y],
    backward: (gradients, gradient) => {
      const apart = operators.reshape(gradient!, wide);
      gradients.add(x, operators.reduce("ReduceSum", apart, [2], false));
    },
  });
  return y;
}

/** General tensor operations: elementwise arithmetic, matrix products, reshaping, gathering. */
import {
  broadcastShapes,
  type Dimension,
  emit,
  emitAll,
  floatConstant,
  floatVector,
  intVector,
  record,
  type Shape,
  sameShape,
  shapeTensor,
  type Tensor,
} from "./graph.js";

const MICROSOFT = "com.microsoft";

/** Elementwise a ∘ b without a derivative, for use inside derivatives. */
export function elementwise(op: "Add" | "Sub" | "Mul" | "Div", a: Tensor, b: Tensor): Tensor {
  return emit({ op, inputs: [a, b], shape: broadcastShapes(a.shape, b.shape) });
}

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
  const y = fusedMatmul(x, weight, { transB: true }, [x.shape[0]!, weight.shape[0]!]);
  record({
    inputs: [x, weight, ...(adapter === undefined ? [] : [adapter.down, adapter.up])],
    outputs: [y],
    backward: (gradients, gradient) => {
      gradients.addProduct(weight, gradient!, x);
      if (adapter !== undefined) {
        const { down, up, scale } = adapter;
        const narrow = [x.shape[0]!, down.shape[0]!];
        gradients.addProduct(up, gradient!, fusedMatmul(x, down, { transB: true, scale }, narrow));
        gradients.addProduct(down, fusedMatmul(gradient!, up, { scale }, narrow), x);
      }
      if (gradients.wants(x))
        gradients.add(x, emit({ op: "MatMul", inputs: [gradient!, weight], shape: x.shape }));
    },
  });
  return y;
}

/** How a matrix product reads its operands. */
export interface MatmulOptions {
  readonly transA?: boolean;
  readonly transB?: boolean;
  /** b is [positions, …batch, size] instead of […batch, positions, size]. */
  readonly positionsFirst?: boolean;
  readonly scale?: number;
}

/** A batched matrix product of the given result shape, without a derivative. */
export function fusedMatmul(a: Tensor, b: Tensor, options: MatmulOptions, shape: Shape): Tensor {
  return emit({
    op: "FusedMatMul",
    domain: MICROSOFT,
    inputs: [a, b],
    attributes: {
      transA: { int: options.transA ? 1 : 0 },
      transB: { int: options.transB ? 1 : 0 },
      transBatchB: { int: options.positionsFirst ? 1 : 0 },
      alpha: { float: options.scale ?? 1 },
    },
    shape,
  });
}

/** The same numbers in another shape. */
export function reshape(x: Tensor, shape: Shape): Tensor {
  if (sameShape(x.shape, shape)) return x;
  const y = reshaped(x, shape);
  record({
    inputs: [x],
    outputs: [y],
    backward: (gradients, gradient) => gradients.add(x, reshaped(gradient!, x.shape)),
  });
  return y;
}

function reshaped(x: Tensor, shape: Shape): Tensor {
  return emit({
    op: "Reshape",
    inputs: [x, shapeTensor(x.graph, shape)],
    type: x.type,
    shape,
  });
}

/** The axes of x in another order. */
export function transpose(x: Tensor, order: readonly number[]): Tensor {
  const y = transposed(x, order);
  const back = order.map((_, axis) => order.indexOf(axis));
  record({
    inputs: [x],
    outputs: [y],
    backward: (gradients, gradient) => gradients.add(x, transposed(gradient!, back)),
  });
  return y;
}

function transposed(x: Tensor, order: readonly number[]): Tensor {
  return emit({
    op: "Transpose",
    inputs: [x],
    attributes: { perm: { ints: order } },
    shape: order.map((axis) => x.shape[axis]!),
  });
}

/** Rows of a table [n, d] by their ids, which may repeat: the embedding. */
export function lookup(table: Tensor, ids: Tensor): Tensor {
  const rows = emit({
    op: "Gather",
    inputs: [table, ids],
    shape: [ids.shape[0]!, table.shape[1]!],
  });
  record({
    inputs: [table],
    outputs: [rows],
    backward: (gradients, gradient) => gradients.addRows(table, ids, gradient!),
  });
  return rows;
}

/** The entries `rows` [n] of x along its first axis, without a derivative. */
export function selectNumbers(x: Tensor, rows: Tensor): Tensor {
  const shape = [rows.shape[0]!, ...x.shape.slice(1)];
  return emit({ op: "Gather", inputs: [x, rows], type: x.type, shape });
}

/**
 * The rows [n] in which one of the columns [rows, 1] is not zero; always includes the first row, so
 * that there is one.
 */
export function rowsWithNumbers(columns: readonly Tensor[]): Tensor {
  const [first, ...rest] = columns.map((column) => unary("Abs", column)) as [Tensor, ...Tensor[]];
  const size = rest.reduce((sum, column) => elementwise("Add", sum, column), first);
  const { graph } = size;
  const flat = emit({
    op: "Reshape",
    inputs: [size, intVector(graph, [-1])],
    shape: [size.shape[0]!],
  });
  const later = emit({
    op: "Slice",
    inputs: [flat, intVector(graph, [1]), intVector(graph, [2 ** 31 - 1])],
    shape: ["later"],
  });
  const one = floatVector(graph, [1]);
  const marked = emit({
    op: "Concat",
    inputs: [one, later],
    attributes: { axis: { int: 0 } },
    shape: [size.shape[0]!],
  });
  const found = emit({ op: "NonZero", inputs: [marked], type: "int64", shape: [1, "found"] });
  return emit({
    op: "Reshape",
    inputs: [found, intVector(graph, [-1])],
    type: "int64",
    shape: ["found"],
  });
}

/** Rows of x [n, d]; an index may repeat only if the gradient of its rows is zero. */
export function selectRows(x: Tensor, index: Tensor): Tensor {
  const rows = selectNumbers(x, index);
  record({
    inputs: [x],
    outputs: [rows],
    backward: (gradients, gradient) => {
      if (!gradients.wants(x)) return;
      const size = emit({ op: "Shape", inputs: [x], type: "int64", shape: [2] });
      const zeros = emit({ op: "ConstantOfShape", inputs: [size], shape: x.shape });
      const column = emit({
        op: "Unsqueeze",
        inputs: [index, intVector(index.graph, [1])],
        type: index.type,
        shape: [index.shape[0]!, 1],
      });
      gradients.add(
        x,
        emit({ op: "ScatterND", inputs: [zeros, column, gradient!], shape: x.shape }),
      );
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
  const apart = reshaped(x, [rows, heads, 1, length, size]);
  const repeated = emit({ op: "Expand", inputs: [apart, ones], shape: wide });
  const y = reshaped(repeated, [rows, heads * times, length, size]);
  record({
    inputs: [x],
    outputs: [y],
    backward: (gradients, gradient) =>
      gradients.add(x, sumAxes(reshaped(gradient!, wide), [2], x.shape, false)),
  });
  return y;
}

/** A fraction of a size, which may be known only when the graph runs. */
export function part(size: Dimension, times: number, count: number): Dimension {
  if (times === count) return size;
  return typeof size === "number" ? (size * times) / count : `${times}/${count} ${size}`;
}

/** Splits x along an axis into `count` equal parts, without a derivative. */
export function splitAxis(
  x: Tensor,
  axis: number,
  count: number,
  each: Dimension = part(x.shape[axis]!, 1, count),
): readonly Tensor[] {
  if (count === 1) return [x];
  const shape = x.shape.map((size, i) => (i === axis ? each : size));
  return emitAll({
    op: "Split",
    inputs: [x],
    attributes: { axis: { int: axis }, num_outputs: { int: count } },
    type: x.type,
    shape,
    more: Array.from({ length: count - 1 }, () => shape),
  });
}

/** Concatenates parts along an axis, without a derivative; `size` is their total. */
export function concatAxis(parts: readonly Tensor[], axis: number, size: Dimension): Tensor {
  const [first] = parts as readonly [Tensor, ...Tensor[]];
  if (parts.length === 1) return first;
  return emit({
    op: "Concat",
    inputs: parts,
    attributes: { axis: { int: axis } },
    type: first.type,
    shape: first.shape.map((given, i) => (i === axis ? size : given)),
  });
}

/** Sum over the given axes. */
export function sumAxes(
  x: Tensor,
  axes: readonly number[],
  shape: Shape,
  keep: boolean,
  op: "ReduceSum" | "ReduceMean" | "ReduceMax" = "ReduceSum",
): Tensor {
  return emit({
    op,
    inputs: [x, intVector(x.graph, axes)],
    attributes: { keepdims: { int: keep ? 1 : 0 } },
    shape,
  });
}

/** Sums a gradient over the axes along which an operand of the given shape was broadcast. */
function reduceTo(gradient: Tensor, shape: Shape): Tensor {
  if (sameShape(gradient.shape, shape)) return gradient;
  const extra = gradient.shape.length - shape.length;
  const axes = gradient.shape.flatMap((size, axis) =>
    axis < extra || (shape[axis - extra] === 1 && size !== 1) ? [axis] : [],
  );
  const kept = gradient.shape.map((size, axis) => (axes.includes(axis) ? 1 : size));
  const sum = sumAxes(gradient, axes, kept, true);
  return extra === 0 ? sum : reshaped(sum, shape);
}

/** Adds a number to x, or multiplies it, without a derivative. */
export function withNumber(op: "Add" | "Mul", x: Tensor, value: number): Tensor {
  return elementwise(op, x, floatConstant(x.graph, value));
}

export function unary(op: string, x: Tensor): Tensor {
  return emit({ op, inputs: [x], shape: x.shape });
}

/** Some operators only take 64-bit indices. */
export function asInt64(x: Tensor): Tensor {
  return emit({
    op: "Cast",
    inputs: [x],
    attributes: { to: { int: 7 } },
    type: "int64",
    shape: x.shape,
  });
}

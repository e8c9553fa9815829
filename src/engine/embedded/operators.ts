/** ONNX operators by their names in the standard, with the types and shapes of their results. */
import {
  broadcastShapes,
  type Dimension,
  emit,
  emitAll,
  floatConstant,
  intVector,
  type Shape,
  shapeTensor,
  type Tensor,
} from "./graph.js";
import { type ElementType, elementCodes } from "./onnx.js";

export const MICROSOFT = "com.microsoft";

/** An operator on each number. */
export function unary(op: string, x: Tensor): Tensor {
  return emit({ op, inputs: [x], type: x.type, shape: x.shape });
}

/** Elementwise a ∘ b, broadcasting. */
export function elementwise(op: "Add" | "Sub" | "Mul" | "Div", a: Tensor, b: Tensor): Tensor {
  return broadcasting(op, [a, b], a.type);
}

/** x ∘ a number. */
export function withNumber(op: "Add" | "Mul", x: Tensor, value: number): Tensor {
  return elementwise(op, x, floatConstant(x.graph, value));
}

export function compare(op: string, a: Tensor, b: Tensor): Tensor {
  return broadcasting(op, [a, b], "bool");
}

export function where(condition: Tensor, x: Tensor, y: Tensor): Tensor {
  return broadcasting("Where", [condition, x, y], x.type);
}

/** An elementwise operator on tensors that are broadcast against one another. */
export function broadcasting(op: string, inputs: readonly Tensor[], type: ElementType): Tensor {
  const shape = inputs.map((input) => input.shape).reduce(broadcastShapes);
  return emit({ op, inputs, type, shape });
}

export function cast(x: Tensor, type: ElementType): Tensor {
  const to = { int: elementCodes[type] };
  return emit({ op: "Cast", inputs: [x], attributes: { to }, type, shape: x.shape });
}

export function softmax(x: Tensor): Tensor {
  return emit({ op: "Softmax", inputs: [x], attributes: { axis: { int: -1 } }, shape: x.shape });
}

export function matMul(a: Tensor, b: Tensor): Tensor {
  const shape = [...a.shape.slice(0, -1), b.shape.at(-1)!];
  return emit({ op: "MatMul", inputs: [a, b], shape });
}

/** How a matrix product reads its operands. */
interface MatMulOptions {
  readonly transA?: boolean;
  readonly transB?: boolean;
  /** b is [positions, …batch, size] instead of […batch, positions, size]. */
  readonly positionsFirst?: boolean;
  readonly scale?: number;
}

/** scale · a b, with operands transposed as it is asked for. */
export function fusedMatMul(
  a: Tensor,
  b: Tensor,
  { transA = false, transB = false, positionsFirst = false, scale = 1 }: MatMulOptions,
): Tensor {
  const rows = a.shape.at(transA ? -1 : -2)!;
  const positions = positionsFirst ? b.shape[0]! : b.shape.at(-2)!;
  return emit({
    op: "FusedMatMul",
    domain: MICROSOFT,
    inputs: [a, b],
    attributes: {
      transA: { int: transA ? 1 : 0 },
      transB: { int: transB ? 1 : 0 },
      transBatchB: { int: positionsFirst ? 1 : 0 },
      alpha: { float: scale },
    },
    shape: [...a.shape.slice(0, -2), rows, transB ? positions : b.shape.at(-1)!],
  });
}

export function reshape(x: Tensor, shape: Shape): Tensor {
  return emit({ op: "Reshape", inputs: [x, shapeTensor(x.graph, shape)], type: x.type, shape });
}

export function transpose(x: Tensor, order: readonly number[]): Tensor {
  return emit({
    op: "Transpose",
    inputs: [x],
    attributes: { perm: { ints: order } },
    shape: order.map((axis) => x.shape[axis]!),
  });
}

/** New axes of size 1; `axes` are their places in the result, in order. */
export function unsqueeze(x: Tensor, axes: readonly number[]): Tensor {
  const shape = [...x.shape];
  for (const axis of axes) shape.splice(axis, 0, 1);
  return emit({ op: "Unsqueeze", inputs: [x, intVector(x.graph, axes)], type: x.type, shape });
}

/** The entries `indices` [n] of x along its first axis. */
export function gather(x: Tensor, indices: Tensor): Tensor {
  const shape = [...indices.shape, ...x.shape.slice(1)];
  return emit({ op: "Gather", inputs: [x, indices], type: x.type, shape });
}

/** Adds the updates to copies of x's numbers, at these indices along an axis. */
export function scatterAdd(x: Tensor, indices: Tensor, updates: Tensor, axis: number): Tensor {
  return emit({
    op: "ScatterElements",
    inputs: [x, indices, updates],
    attributes: { axis: { int: axis }, reduction: { string: "add" } },
    shape: x.shape,
  });
}

export function shapeOf(x: Tensor): Tensor {
  return emit({ op: "Shape", inputs: [x], type: "int64", shape: [x.shape.length] });
}

/** x in the shape of another tensor. */
export function expandTo(x: Tensor, like: Tensor): Tensor {
  return emit({ op: "Expand", inputs: [x, shapeOf(like)], type: x.type, shape: like.shape });
}

export function zerosLike(x: Tensor): Tensor {
  return emit({ op: "ConstantOfShape", inputs: [shapeOf(x)], shape: x.shape });
}

/** A reduction over the given axes, which are kept with size 1 unless told otherwise. */
export function reduce(
  op: "ReduceSum" | "ReduceMax",
  x: Tensor,
  axes: readonly number[],
  keep = true,
): Tensor {
  const shape = x.shape.flatMap((size, axis) => (axes.includes(axis) ? (keep ? [1] : []) : [size]));
  return emit({
    op,
    inputs: [x, intVector(x.graph, axes)],
    attributes: { keepdims: { int: keep ? 1 : 0 } },
    shape,
  });
}

/** A fraction of a size, which may be known only when the graph runs. */
export function part(size: Dimension, times: number, count: number): Dimension {
  if (times === count) return size;
  return typeof size === "number" ? (size * times) / count : `${times}/${count} ${size}`;
}

/** Splits x along an axis into `count` equal parts. */
export function split(
  x: Tensor,
  axis: number,
  count: number,
  each: Dimension = part(x.shape[axis]!, 1, count),
): readonly Tensor[] {
  if (count === 1) return [x];
  const shape = withSize(x.shape, axis, each);
  return emitAll({
    op: "Split",
    inputs: [x],
    attributes: { axis: { int: axis }, num_outputs: { int: count } },
    type: x.type,
    shape,
    more: Array.from({ length: count - 1 }, () => shape),
  });
}

/** Splits x along an axis into parts of these sizes. */
export function splitInto(x: Tensor, axis: number, sizes: Shape): readonly Tensor[] {
  const [shape, ...more] = sizes.map((size) => withSize(x.shape, axis, size));
  return emitAll({
    op: "Split",
    inputs: [x, shapeTensor(x.graph, sizes)],
    attributes: { axis: { int: axis } },
    shape: shape!,
    more,
  });
}

/** Concatenates parts along an axis; `size` is their total. */
export function concat(parts: readonly Tensor[], axis: number, size: Dimension): Tensor {
  const [first] = parts as readonly [Tensor, ...Tensor[]];
  if (parts.length === 1) return first;
  return emit({
    op: "Concat",
    inputs: parts,
    attributes: { axis: { int: axis } },
    type: first.type,
    shape: withSize(first.shape, axis, size),
  });
}

function withSize(shape: Shape, axis: number, size: Dimension): Shape {
  return shape.map((given, i) => (i === axis ? size : given));
}

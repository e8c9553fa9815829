/** Many tensors in one array, so that arithmetic over all of them takes few calls. */
import { type TensorSpec, VALUE_HEAD } from "@pawl/models/weights/tensor-names.js";

/**
 * One array, and where the tensors lie in it: the value head if there is one, other matrices, then
 * vectors.
 */
export interface FlatTensors {
  readonly data: Float32Array;
  /** Views of the data by name, in the order the model uses them. */
  readonly tensors: ReadonlyMap<string, Float32Array>;
  /** Size of the value head, which comes first because training may leave it out. */
  readonly valueHeadSize: number;
  /** Size of all matrices; norms and biases follow them. */
  readonly matrixSize: number;
}

/** Tensors of these shapes: new and zero, or views of the given data. */
export function flatTensors(tensors: readonly TensorSpec[], data?: Float32Array): FlatTensors {
  const specs = tensors.map(({ name, shape }) => ({
    name,
    isVector: shape.length === 1,
    size: shape.reduce((product, size) => product * size, 1),
  }));
  const heads = specs.filter(({ name }) => name === VALUE_HEAD);
  const matrices = specs.filter(({ name, isVector }) => !isVector && name !== VALUE_HEAD);
  const begins = new Map<string, number>();
  let end = 0;
  const place = (placed: typeof specs): number => {
    for (const { name, size } of placed) {
      begins.set(name, end);
      end += size;
    }
    return end;
  };
  const valueHeadSize = place(heads);
  const matrixSize = place(matrices);
  const total = place(specs.filter(({ isVector }) => isVector));
  const all = data ?? new Float32Array(total);
  if (all.length !== total)
    throw new Error(`the tensors have ${total} numbers, but ${all.length} were given`);
  return {
    data: all,
    tensors: new Map(
      specs.map(({ name, size }) => {
        const begin = begins.get(name)!;
        return [name, all.subarray(begin, begin + size)];
      }),
    ),
    valueHeadSize,
    matrixSize,
  };
}

/** For tests: runs small graphs, and compares their derivatives with finite differences. */
import { onnxRuntime } from "../../onnx-runtime.js";
import { differentiate } from "./gradients.js";
import { addInput, createGraph, emit, type Graph, type Shape, type Tensor } from "./graph.js";
import { encodeModel } from "./onnx.js";
import { finishGraph } from "./scan.js";

/** An input of a graph under test. */
export interface TestInput {
  readonly shape: readonly number[];
  readonly data: Float32Array | Int32Array;
  /** Not differentiated, although it holds floats. */
  readonly constant?: true;
}

/** Builds and runs a graph once; results come in the order the builder returns them. */
export async function runGraph(
  inputs: readonly TestInput[],
  build: (graph: Graph, inputs: readonly Tensor[]) => readonly Tensor[],
): Promise<readonly Float32Array[]> {
  const compiled = await compileGraph(inputs, build);
  try {
    return await compiled.run(inputs);
  } finally {
    await compiled.release();
  }
}

async function compileGraph(
  inputs: readonly TestInput[],
  build: (graph: Graph, inputs: readonly Tensor[]) => readonly Tensor[],
) {
  const graph = createGraph();
  const typeOf = ({ data }: TestInput) => (data instanceof Float32Array ? "float32" : "int32");
  const declared = inputs.map((input, i) =>
    addInput(graph, `in${i}`, typeOf(input), input.shape as Shape),
  );
  const outputs = build(graph, declared).map((tensor) =>
    // A graph cannot return one of its inputs unchanged.
    emit({ op: "Identity", inputs: [tensor], type: tensor.type, shape: tensor.shape }),
  );
  const ort = onnxRuntime();
  const session = await ort.InferenceSession.create(encodeModel(finishGraph(graph, outputs)), {
    intraOpNumThreads: 2,
  });
  return {
    run: async (given: readonly TestInput[]) => {
      const feeds = Object.fromEntries(
        given.map((input, i) => [
          `in${i}`,
          new ort.Tensor(typeOf(input), input.data, [...input.shape]),
        ]),
      );
      const results = await session.run(feeds);
      return outputs.map((tensor) => results[tensor.name]!.data as Float32Array);
    },
    release: () => session.release(),
  };
}

/**
 * The largest difference, over the float inputs, between the derivative of Σ seed · output along a
 * direction and its four-point finite difference, relative to the size of the numbers involved.
 */
export async function gradientError(
  inputs: readonly TestInput[],
  apply: (inputs: readonly Tensor[]) => readonly Tensor[],
  noise: () => number,
): Promise<number> {
  const floats = inputs.flatMap(({ data, constant }, i) =>
    data instanceof Float32Array && !constant ? [i] : [],
  );
  const shapes: (readonly number[])[] = [];
  const probe = createGraph();
  const probed = apply(
    inputs.map(({ shape, data }, i) =>
      addInput(probe, `in${i}`, data instanceof Float32Array ? "float32" : "int32", shape),
    ),
  );
  for (const tensor of probed) shapes.push(tensor.shape as readonly number[]);
  const seeds = shapes.map((shape): TestInput => ({ shape, data: randomFloats(shape, noise) }));
  const forward = await compileGraph(inputs, (_, tensors) => apply(tensors));
  const analytic = await runGraph([...inputs, ...seeds], (graph, tensors) => {
    const given = tensors.slice(0, inputs.length);
    const outputs = apply(given);
    const gradients = differentiate(
      graph,
      new Map(outputs.map((output, i) => [output, tensors[inputs.length + i]!])),
      new Map(floats.map((i) => [given[i]!, undefined])),
    );
    return floats.map((i) => gradients.get(given[i]!)!);
  });
  const step = 0.03;
  let worst = 0;
  for (const [which, i] of floats.entries()) {
    const direction = randomFloats(inputs[i]!.shape, noise);
    const moved = async (distance: number) => {
      const data = inputs[i]!.data.map((x, j) => x + distance * direction[j]!) as Float32Array;
      const changed = inputs.map((input, j) => (j === i ? { ...input, data } : input));
      const results = await forward.run(changed);
      return results.reduce((sum, result, o) => sum + dot(result, seeds[o]!.data), 0);
    };
    const [one, back, two, farBack] = [
      await moved(step),
      await moved(-step),
      await moved(2 * step),
      await moved(-2 * step),
    ];
    const numeric = (8 * (one - back) - (two - farBack)) / (12 * step);
    const exact = dot(analytic[which]!, direction);
    const size = Math.sqrt(dot(analytic[which]!, analytic[which]!) * dot(direction, direction));
    worst = Math.max(worst, Math.abs(numeric - exact) / (1 + size));
  }
  await forward.release();
  return worst;
}

/** Numbers in [-1, 1) of the given shape. */
export function randomFloats(shape: readonly number[], noise: () => number): Float32Array {
  return Float32Array.from(
    { length: shape.reduce((product, size) => product * size, 1) },
    () => 2 * noise() - 1,
  );
}

function dot(a: ArrayLike<number>, b: ArrayLike<number>): number {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i]! * b[i]!;
  return sum;
}

/**
 * AdamW and the sums over parameters it needs, over one array of all tensors.
 *
 * AdamW and sums over replicas are loops in WebAssembly. As a graph, AdamW is thirteen operators, each
 * a pass over memory, and ONNX Runtime copies every result once more for JavaScript.
 */
import type { AdamParams } from "../engine.js";
import { addInput, createGraph, emit } from "./graph.js";
import { finishProgram, type Program } from "./program.js";
import { type Feed, floats, type Sessions } from "./sessions.js";
import { add, compileLoop, div, mul, sqrt, sub, type Vector } from "./wasm.js";

/** Numbers per chunk: enough that calls cost little, few enough that a chunk stays in cache. */
const CHUNK = 65_536;

/** More threads would spin for a while after each call, on cores that the replicas need. */
const ALONE = { threads: 1 };

/** Parameters, their gradients and both moments, number by number. */
export interface AdamArrays {
  readonly parameters: Float32Array;
  readonly gradients: Float32Array;
  readonly first: Float32Array;
  readonly second: Float32Array;
}

/** What an optimiser step changes: from `begin` on, with weight decay before `matrixSize`. */
export interface AdamRange {
  readonly begin: number;
  readonly matrixSize: number;
}

const DEFAULTS = { beta1: 0.9, beta2: 0.999, eps: 1e-8, weightDecay: 0.01 } as const;

/**
 * Updates parameters and moments in place. Weight decay is decoupled and skips vectors (norms,
 * biases).
 *
 * Finite gradients and checked settings keep all results finite, so nothing can fail half-way.
 */
export function adamStep(
  arrays: AdamArrays,
  { begin, matrixSize }: AdamRange,
  params: AdamParams & { readonly scale: number; readonly optimSteps: number },
): void {
  const { beta1 = DEFAULTS.beta1, beta2 = DEFAULTS.beta2, eps = DEFAULTS.eps } = params;
  const decay = params.learningRate * (params.weightDecay ?? DEFAULTS.weightDecay);
  // The gradient's scale and the bias corrections are folded into factors that are needed anyway.
  const root = Math.sqrt(1 - beta2);
  const correction = Math.sqrt(1 - beta2 ** params.optimSteps);
  const scalars = {
    rate: (params.learningRate * correction) / (1 - beta1 ** params.optimSteps),
    keepFirst: beta1,
    keepSecond: beta2,
    toFirst: (1 - beta1) / root,
    toRoot: params.scale * root,
    eps: eps * correction,
  };
  for (const { from, to, keep } of [
    { from: begin, to: matrixSize, keep: 1 - decay },
    { from: matrixSize, to: arrays.parameters.length, keep: 1 },
  ]) {
    const part = (array: Float32Array) => array.subarray(from, to);
    const { parameters, gradients, first, second } = arrays;
    update(
      {
        parameters: part(parameters),
        gradients: part(gradients),
        first: part(first),
        second: part(second),
      },
      { ...scalars, keep },
    );
  }
}

function chunksOf(array: Float32Array): readonly Feed[] {
  return Array.from({ length: Math.ceil(array.length / CHUNK) }, (_, i) => {
    const chunk = array.subarray(i * CHUNK, (i + 1) * CHUNK);
    return floats(chunk, [chunk.length]);
  });
}

const update = compileLoop({
  arrays: ["parameters", "gradients", "first", "second"],
  scalars: ["keep", "rate", "keepFirst", "keepSecond", "toFirst", "toRoot", "eps"],
  body: (array, scalar, later) => {
    const g = later(mul(array("gradients"), scalar("toRoot")));
    const decayed = (moment: Vector, kept: Vector, share: Vector) =>
      later(add(mul(moment, kept), share));
    const first = decayed(array("first"), scalar("keepFirst"), mul(g, scalar("toFirst")));
    const second = decayed(array("second"), scalar("keepSecond"), mul(g, g));
    const change = div(first, add(sqrt(second), scalar("eps")));
    const moved = sub(mul(array("parameters"), scalar("keep")), mul(change, scalar("rate")));
    return [
      ["first", first],
      ["second", second],
      ["parameters", moved],
    ];
  },
});

/** The squared norm of an array, which is not finite if a number or its square is not. */
export async function squaredNorm(sessions: Sessions, array: Float32Array): Promise<number> {
  const norm = await sessions.get("norm", normProgram, ALONE);
  let sum = 0;
  for (const chunk of chunksOf(array)) sum += (await norm.run({ x: chunk })).get("norm")![0]!;
  return sum;
}

function normProgram(): Program {
  const graph = createGraph();
  const x = addInput(graph, "x", "float32", ["n"]);
  const norm = emit({
    op: "ReduceSumSquare",
    inputs: [x],
    attributes: { keepdims: { int: 0 } },
    shape: [],
  });
  return finishProgram(graph, new Map([["norm", norm]]));
}

const addition = compileLoop({
  arrays: ["sum", "array"],
  scalars: [],
  body: (array) => [["sum", add(array("sum"), array("array"))]],
});

/** Adds an array to another of the same size, in place. */
export function addArray(sum: Float32Array, array: Float32Array): void {
  addition({ sum, array }, {});
}

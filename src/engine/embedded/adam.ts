/**
 * AdamW and the sums over parameters it needs, as graphs that run over chunks of one array of all
 * tensors.
 */
import { type AdamParams, EngineError } from "../engine.js";
import { addInput, createGraph, emit, type Tensor } from "./graph.js";
import { elementwise, unary } from "./ops.js";
import { finishProgram, type Program } from "./program.js";
import { type Feed, type Feeds, floats, type Sessions } from "./sessions.js";

/** Numbers per chunk: enough that calls cost little, few enough that a chunk stays in cache. */
const CHUNK = 65_536;

/** More threads would spin for a while after each call, on cores that the replicas need. */
const ALONE = { threads: 1 };

const SCALARS = ["keep", "rate", "keepFirst", "keepSecond", "toFirst", "toRoot", "eps"] as const;

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

/** Rejects settings under which the weights could become NaN or infinite. */
export function checkAdamParams(params: AdamParams): void {
  const check = (name: keyof AdamParams, low: number, high: number, fallback: number) => {
    const value = params[name] ?? fallback;
    if (!(value >= low && value <= high))
      throw new EngineError(`${name} must be between ${low} and ${high}, but it is ${value}`);
  };
  check("learningRate", 0, 100, 0);
  check("beta1", 0, 0.999999, DEFAULTS.beta1);
  check("beta2", 0, 0.9999999, DEFAULTS.beta2);
  check("eps", 1e-16, 1, DEFAULTS.eps);
  check("weightDecay", 0, 1e3, DEFAULTS.weightDecay);
  if (params.gradClipNorm !== undefined) check("gradClipNorm", 1e-12, Number.MAX_VALUE, 1);
}

const DEFAULTS = { beta1: 0.9, beta2: 0.999, eps: 1e-8, weightDecay: 0.01 } as const;

/**
 * Updates parameters and moments in place. Weight decay is decoupled and skips vectors (norms,
 * biases).
 *
 * Finite gradients and checked settings keep all results finite, so nothing can fail half-way.
 */
export async function adamStep(
  sessions: Sessions,
  arrays: AdamArrays,
  { begin, matrixSize }: AdamRange,
  params: AdamParams & { readonly scale: number; readonly optimSteps: number },
): Promise<void> {
  const update = await sessions.get("adam", adamProgram, ALONE);
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
    const shared = scalarFeeds({ ...scalars, keep });
    const chunks = (array: Float32Array) => chunksOf(array.subarray(from, to));
    const [gradients, first, second] = [
      chunks(arrays.gradients),
      chunks(arrays.first),
      chunks(arrays.second),
    ];
    for (const [i, parameter] of chunks(arrays.parameters).entries()) {
      const changed = { parameter, first: first[i]!, second: second[i]! };
      await update.run({ ...shared, ...changed, gradient: gradients[i]! }, changed);
    }
  }
}

function scalarFeeds(values: Readonly<Record<(typeof SCALARS)[number], number>>): Feeds {
  return Object.fromEntries(
    SCALARS.map((name) => [name, floats(Float32Array.of(values[name]), [])]),
  );
}

function chunksOf(array: Float32Array): readonly Feed[] {
  return Array.from({ length: Math.ceil(array.length / CHUNK) }, (_, i) => {
    const chunk = array.subarray(i * CHUNK, (i + 1) * CHUNK);
    return floats(chunk, [chunk.length]);
  });
}

/** Each result may overwrite its input, because only the first operator reads it. */
function adamProgram(): Program {
  const graph = createGraph();
  const vector = (name: string) => addInput(graph, name, "float32", ["n"]);
  const [parameter, first, second, gradient] = [
    vector("parameter"),
    vector("first"),
    vector("second"),
    vector("gradient"),
  ];
  const scalars = SCALARS.map((name) => addInput(graph, name, "float32", []));
  const scalar = (name: (typeof SCALARS)[number]) => scalars[SCALARS.indexOf(name)]!;
  const g = elementwise("Mul", gradient, scalar("toRoot"));
  const decayed = (moment: Tensor, kept: Tensor, share: Tensor) =>
    elementwise("Add", elementwise("Mul", moment, kept), share);
  const newFirst = decayed(first, scalar("keepFirst"), elementwise("Mul", g, scalar("toFirst")));
  const newSecond = decayed(second, scalar("keepSecond"), elementwise("Mul", g, g));
  const change = elementwise(
    "Div",
    newFirst,
    elementwise("Add", unary("Sqrt", newSecond), scalar("eps")),
  );
  const moved = elementwise(
    "Sub",
    elementwise("Mul", parameter, scalar("keep")),
    elementwise("Mul", change, scalar("rate")),
  );
  return finishProgram(
    graph,
    new Map([
      ["parameter", moved],
      ["first", newFirst],
      ["second", newSecond],
    ]),
  );
}

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

/** Adds an array to another of the same size, in place. */
export async function addArray(
  sessions: Sessions,
  sum: Float32Array,
  array: Float32Array,
): Promise<void> {
  const add = await sessions.get("add", addProgram, ALONE);
  const into = floats(sum, [sum.length]);
  await add.run({ sum: into, array: floats(array, [array.length]) }, { sum: into });
}

function addProgram(): Program {
  const graph = createGraph();
  const [sum, array] = [
    addInput(graph, "sum", "float32", ["n"]),
    addInput(graph, "array", "float32", ["n"]),
  ];
  return finishProgram(graph, new Map([["sum", elementwise("Add", sum, array)]]));
}

/** AdamW, and the sums over parameters it needs, as graphs run over pieces of one array that holds all tensors. */
import { type AdamParams, EngineError } from "../engine.js";
import { addInput, createGraph, emit, type Tensor } from "./graph.js";
import { elementwise, unary } from "./ops.js";
import { finishProgram, type Program } from "./program.js";
import { type Feed, type Feeds, floats, type Sessions } from "./sessions.js";

/** Numbers per piece: enough that calls cost little, few enough that what a piece needs stays in cache. */
const PIECE = 65_536;

/** Threads that have met stay awake for a while, on cores that the replicas need. */
const ALONE = { threads: 1 };

const SCALARS = ["keep", "rate", "keepFirst", "keepSecond", "toFirst", "toRoot", "eps"] as const;

/** Parameters, their gradients and both moments, number by number. */
export interface AdamArrays {
  readonly parameters: Float32Array;
  readonly gradients: Float32Array;
  readonly first: Float32Array;
  readonly second: Float32Array;
}

/** Where an optimiser step has an effect: from `begin` on, with weight decay before `matrixSize`. */
export interface AdamRange {
  readonly begin: number;
  readonly matrixSize: number;
}

/** Refuses settings under which the weights could become anything but finite numbers. */
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
 * Updates parameters and moments in place. Weight decay is decoupled and spares vectors (norms, biases).
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
  // The scale of the gradient and the bias corrections are folded into the factors that are there anyway.
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
    const pieces = (array: Float32Array) => piecesOf(array.subarray(from, to));
    const [gradients, first, second] = [
      pieces(arrays.gradients),
      pieces(arrays.first),
      pieces(arrays.second),
    ];
    for (const [i, parameter] of pieces(arrays.parameters).entries()) {
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

function piecesOf(array: Float32Array): readonly Feed[] {
  return Array.from({ length: Math.ceil(array.length / PIECE) }, (_, i) => {
    const piece = array.subarray(i * PIECE, (i + 1) * PIECE);
    return floats(piece, [piece.length]);
  });
}

/** Each result may lie where its input does, because only its first operator reads that. */
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

/** The square of an array's norm, which is not finite where a number, or its square, is not. */
export async function squaredNorm(sessions: Sessions, array: Float32Array): Promise<number> {
  const norm = await sessions.get("norm", normProgram, ALONE);
  let sum = 0;
  for (const piece of piecesOf(array)) sum += (await norm.run({ x: piece })).get("norm")![0]!;
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

/** Adds an array to one of its size, in place. */
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

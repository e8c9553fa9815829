/** AdamW as a graph, run over pieces of the parameters small enough to stay in cache. */
import { type AdamParams, EngineError } from "../engine.js";
import { addInput, createGraph, emit, floatConstant, type Tensor } from "./graph.js";
import { elementwise, sumAxes, unary } from "./ops.js";
import { finishProgram, type Program } from "./program.js";
import { type Feeds, floats, type Sessions } from "./sessions.js";

/** Numbers per piece: a piece of parameter, gradient and both moments is 1 MiB. */
const PIECE = 65_536;

/** A piece is too small for several threads to be worth their meeting. */
const ALONE = { threads: 1 };

const SCALARS = ["keep", "rate", "keepFirst", "keepSecond", "toFirst", "toRoot", "eps"] as const;

/** Parameters and both moments, by tensor name; a step changes them in place. */
export interface AdamState {
  readonly first: ReadonlyMap<string, Float32Array>;
  readonly second: ReadonlyMap<string, Float32Array>;
  readonly steps: number;
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
  parameters: ReadonlyMap<string, Float32Array>,
  gradients: ReadonlyMap<string, Float32Array>,
  state: AdamState,
  params: AdamParams & { readonly scale: number; readonly isMatrix: (name: string) => boolean },
): Promise<void> {
  const update = await sessions.get("adam", adamProgram, ALONE);
  const { beta1 = DEFAULTS.beta1, beta2 = DEFAULTS.beta2, eps = DEFAULTS.eps } = params;
  const decay = params.learningRate * (params.weightDecay ?? DEFAULTS.weightDecay);
  // The scale of the gradient and the bias corrections are folded into the factors that are there anyway.
  const root = Math.sqrt(1 - beta2);
  const correction = Math.sqrt(1 - beta2 ** state.steps);
  const scalars = {
    rate: (params.learningRate * correction) / (1 - beta1 ** state.steps),
    keepFirst: beta1,
    keepSecond: beta2,
    toFirst: (1 - beta1) / root,
    toRoot: params.scale * root,
    eps: eps * correction,
  };
  for (const [name, gradient] of gradients) {
    const arrays = [
      parameters.get(name)!,
      state.first.get(name)!,
      state.second.get(name)!,
    ] as const;
    const keep = params.isMatrix(name) ? 1 - decay : 1;
    const shared = scalarFeeds({ ...scalars, keep });
    for (let begin = 0; begin < gradient.length; begin += PIECE) {
      const piece = (array: Float32Array) => {
        const part = array.subarray(begin, begin + PIECE);
        return floats(part, [part.length]);
      };
      const results = await update.run({
        ...shared,
        parameter: piece(arrays[0]),
        first: piece(arrays[1]),
        second: piece(arrays[2]),
        gradient: piece(gradient),
      });
      arrays[0].set(results.get("parameter")!, begin);
      arrays[1].set(results.get("first")!, begin);
      arrays[2].set(results.get("second")!, begin);
    }
  }
}

function scalarFeeds(values: Readonly<Record<(typeof SCALARS)[number], number>>): Feeds {
  return Object.fromEntries(
    SCALARS.map((name) => [name, floats(Float32Array.of(values[name]), [])]),
  );
}

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

/** The square of each tensor's norm, which is not finite where the tensor is not. */
export async function squaredNorms(
  sessions: Sessions,
  tensors: ReadonlyMap<string, Float32Array>,
): Promise<ReadonlyMap<string, number>> {
  const norms = await sessions.get("norm", normProgram, ALONE);
  const found = new Map<string, number>();
  for (const [name, data] of tensors) {
    let sum = 0;
    for (let begin = 0; begin < data.length; begin += PIECE) {
      const part = data.subarray(begin, begin + PIECE);
      sum += (await norms.run({ x: floats(part, [part.length]) })).get("norm")![0]!;
    }
    found.set(name, sum);
  }
  return found;
}

function normProgram(): Program {
  const graph = createGraph();
  const x = addInput(graph, "x", "float32", ["n"]);
  const sum = sumAxes(emit({ op: "Mul", inputs: [x, x], shape: x.shape }), [0], [], false);
  return finishProgram(
    graph,
    new Map([["norm", elementwise("Mul", sum, floatConstant(graph, 1))]]),
  );
}

/** The sum of arrays of one size. */
export async function sumArrays(
  sessions: Sessions,
  arrays: readonly Float32Array[],
): Promise<Float32Array> {
  if (arrays.length === 1) return arrays[0]!;
  const sum = await sessions.get(`sum ${arrays.length}`, () => sumProgram(arrays.length));
  const feeds = arrays.map((array, i) => [`x${i}`, floats(array, [array.length])]);
  return (await sum.run(Object.fromEntries(feeds))).get("sum")!;
}

function sumProgram(count: number): Program {
  const graph = createGraph();
  const inputs = Array.from({ length: count }, (_, i) =>
    addInput(graph, `x${i}`, "float32", ["n"]),
  );
  const sum = inputs.reduce((left, right) => elementwise("Add", left, right));
  return finishProgram(graph, new Map([["sum", sum]]));
}

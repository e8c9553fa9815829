/** AdamW, and the sums over parameters it needs: plain loops, because a graph would take thirteen passes over memory. */
import { type AdamParams, EngineError } from "../engine.js";

/** Tensors by name. */
type Tensors = ReadonlyMap<string, Float32Array>;

/** Both moments, by tensor name; a step changes them in place. */
export interface AdamState {
  readonly first: Tensors;
  readonly second: Tensors;
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
export function adamStep(
  parameters: Tensors,
  gradients: Tensors,
  state: AdamState,
  params: AdamParams & { readonly scale: number; readonly isMatrix: (name: string) => boolean },
): void {
  const { beta1 = DEFAULTS.beta1, beta2 = DEFAULTS.beta2, eps = DEFAULTS.eps } = params;
  const decay = params.learningRate * (params.weightDecay ?? DEFAULTS.weightDecay);
  // The bias corrections are folded into factors that are there anyway.
  const correction = Math.sqrt(1 - beta2 ** state.steps);
  const rate = (params.learningRate * correction) / (1 - beta1 ** state.steps);
  for (const [name, gradient] of gradients)
    updateTensor(
      {
        parameter: parameters.get(name)!,
        first: state.first.get(name)!,
        second: state.second.get(name)!,
        gradient,
      },
      {
        beta1,
        beta2,
        rate,
        eps: eps * correction,
        scale: params.scale,
        keep: params.isMatrix(name) ? 1 - decay : 1,
      },
    );
}

function updateTensor(
  {
    parameter,
    first,
    second,
    gradient,
  }: Readonly<Record<"parameter" | "first" | "second" | "gradient", Float32Array>>,
  {
    beta1,
    beta2,
    rate,
    eps,
    scale,
    keep,
  }: Readonly<Record<"beta1" | "beta2" | "rate" | "eps" | "scale" | "keep", number>>,
): void {
  for (let i = 0; i < gradient.length; i++) {
    const g = gradient[i]! * scale;
    const m = beta1 * first[i]! + (1 - beta1) * g;
    const v = beta2 * second[i]! + (1 - beta2) * g * g;
    first[i] = m;
    second[i] = v;
    parameter[i] = keep * parameter[i]! - (rate * m) / (Math.sqrt(v) + eps);
  }
}

/** The square of each tensor's norm, which is not finite where the tensor, or its second moment, would not be. */
export function squaredNorms(tensors: Tensors): ReadonlyMap<string, number> {
  return new Map([...tensors].map(([name, data]) => [name, squaredNorm(data)]));
}

function squaredNorm(data: Float32Array): number {
  // Two sums, so that an addition need not wait for the one before it.
  let [even, odd] = [0, 0];
  const pairs = data.length - (data.length % 2);
  for (let i = 0; i < pairs; i += 2) {
    even += data[i]! * data[i]!;
    odd += data[i + 1]! * data[i + 1]!;
  }
  if (pairs < data.length) even += data[pairs]! * data[pairs]!;
  // In single precision, as second moments are.
  return Math.fround(even + odd);
}

/** Adds arrays of its size to the first one, and returns it. */
export function addArrays(sum: Float32Array, ...arrays: readonly Float32Array[]): Float32Array {
  for (const array of arrays) for (let i = 0; i < sum.length; i++) sum[i]! += array[i]!;
  return sum;
}

import { describe, expect, it } from "vitest";
import { createRandom } from "../../random.js";
import { adamStep, checkAdamParams, squaredNorms } from "./adam.js";
import { randomFloats } from "./graph-testing.js";

/** The textbook AdamW, one number at a time. */
function textbook(
  parameter: number,
  gradients: readonly number[],
  { rate, beta1, beta2, eps, decay }: Record<"rate" | "beta1" | "beta2" | "eps" | "decay", number>,
): number {
  let [p, m, v] = [parameter, 0, 0];
  gradients.forEach((g, i) => {
    m = beta1 * m + (1 - beta1) * g;
    v = beta2 * v + (1 - beta2) * g * g;
    const corrected = m / (1 - beta1 ** (i + 1));
    const root = Math.sqrt(v / (1 - beta2 ** (i + 1)));
    p = p - rate * decay * p - (rate * corrected) / (root + eps);
  });
  return p;
}

describe("AdamW", () => {
  it("is the textbook's", () => {
    const noise = createRandom(3).next;
    const size = 701;
    const start = randomFloats([size], noise);
    const steps = [1, 2, 3].map(() => randomFloats([size], noise));
    const settings = { rate: 0.01, beta1: 0.8, beta2: 0.95, eps: 1e-6, decay: 0.1 };
    const tensors = () =>
      new Map([
        ["matrix", new Float32Array(size)],
        ["vector", new Float32Array(size)],
      ]);
    const parameters = new Map([
      ["matrix", start.slice()],
      ["vector", start.slice()],
    ]);
    const moments = { first: tensors(), second: tensors() };
    for (const [i, gradient] of steps.entries())
      adamStep(
        parameters,
        new Map([...parameters.keys()].map((name) => [name, gradient])),
        { ...moments, steps: i + 1 },
        {
          learningRate: settings.rate,
          beta1: settings.beta1,
          beta2: settings.beta2,
          eps: settings.eps,
          weightDecay: settings.decay,
          scale: 0.5,
          isMatrix: (name) => name === "matrix",
        },
      );
    for (const i of [0, 1, 300, size - 1]) {
      const halves = steps.map((gradient) => gradient[i]! * 0.5);
      const matrix = textbook(start[i]!, halves, settings);
      const vector = textbook(start[i]!, halves, { ...settings, decay: 0 });
      expect(parameters.get("matrix")![i]).toBeCloseTo(matrix, 5);
      expect(parameters.get("vector")![i]).toBeCloseTo(vector, 5);
    }
  });

  it("measures each tensor, and sees what is not finite", () => {
    const norms = squaredNorms(
      new Map([
        ["fine", new Float32Array(100_000).fill(2)],
        ["broken", Float32Array.of(1, Number.NaN, 3)],
      ]),
    );
    expect(norms.get("fine")).toBe(400_000);
    expect(norms.get("broken")).toBeNaN();
  });

  it("refuses settings that could ruin the weights", () => {
    expect(() => checkAdamParams({ learningRate: Number.POSITIVE_INFINITY })).toThrow(
      /learningRate/,
    );
    expect(() => checkAdamParams({ learningRate: 1, beta2: 1 })).toThrow(/beta2/);
    expect(() => checkAdamParams({ learningRate: 1, eps: 0 })).toThrow(/eps/);
    expect(() => checkAdamParams({ learningRate: 1, gradClipNorm: 0 })).toThrow(/gradClipNorm/);
    expect(() => checkAdamParams({ learningRate: 1e-3 })).not.toThrow();
  });
});

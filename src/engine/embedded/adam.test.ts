import { describe, expect, it } from "vitest";
import { createRandom } from "../../random.js";
import { checkAdamParams } from "../checks.js";
import { adamStep, addArray, squaredNorm } from "./adam.js";
import { randomFloats } from "./graph-testing.js";
import { createSessions } from "./sessions.js";

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
  it("matches the textbook over several chunks, and decays matrices but not vectors", () => {
    const noise = createRandom(3).next;
    // Both parts take two chunks.
    const [size, matrixSize, begin] = [140_003, 70_001, 5];
    const start = randomFloats([size], noise);
    const steps = [1, 2, 3].map(() => randomFloats([size], noise));
    const settings = { rate: 0.01, beta1: 0.8, beta2: 0.95, eps: 1e-6, decay: 0.1 };
    const parameters = start.slice();
    const moments = { first: new Float32Array(size), second: new Float32Array(size) };
    for (const [i, gradients] of steps.entries())
      adamStep(
        { parameters, gradients, ...moments },
        { begin, matrixSize },
        {
          learningRate: settings.rate,
          beta1: settings.beta1,
          beta2: settings.beta2,
          eps: settings.eps,
          weightDecay: settings.decay,
          scale: 0.5,
          optimSteps: i + 1,
        },
      );
    expect(parameters.subarray(0, begin)).toEqual(start.subarray(0, begin));
    expect(moments.first.subarray(0, begin).every((moment) => moment === 0)).toBe(true);
    for (const i of [5, 6, 65_540, 65_541, 70_000, 70_001, 135_536, 135_537, size - 1]) {
      const halves = steps.map((gradients) => gradients[i]! * 0.5);
      const decay = i < matrixSize ? settings.decay : 0;
      expect(parameters[i]).toBeCloseTo(textbook(start[i]!, halves, { ...settings, decay }), 5);
    }
  });

  it("computes each number as single floats do, bit by bit", () => {
    const f = Math.fround;
    const noise = createRandom(4).next;
    // Not a multiple of four, and more than a chunk.
    const size = 5003;
    const [parameters, gradients, first] = [0, 1, 2].map(() => randomFloats([size], noise)) as [
      Float32Array,
      Float32Array,
      Float32Array,
    ];
    const second = randomFloats([size], noise).map(Math.abs);
    const after = {
      parameters: parameters.slice(),
      first: first.slice(),
      second: second.slice(),
      gradients,
    };
    const range = { begin: 0, matrixSize: size };
    adamStep(after, range, { learningRate: 0.01, scale: 0.5, optimSteps: 3 });
    const [root, correction] = [Math.sqrt(1 - 0.999), Math.sqrt(1 - 0.999 ** 3)];
    const rate = f((0.01 * correction) / (1 - 0.9 ** 3));
    const keep = f(1 - 0.01 * 0.01);
    const expected = {
      first: first.slice(),
      second: second.slice(),
      parameters: parameters.slice(),
    };
    for (let i = 0; i < size; i++) {
      const g = f(gradients[i]! * f(0.5 * root));
      const m = f(f(first[i]! * f(0.9)) + f(g * f((1 - 0.9) / root)));
      const v = f(f(second[i]! * f(0.999)) + f(g * g));
      const change = f(m / f(f(Math.sqrt(v)) + f(1e-8 * correction)));
      expected.first[i] = m;
      expected.second[i] = v;
      expected.parameters[i] = f(f(parameters[i]! * keep) - f(change * rate));
    }
    expect(after).toEqual({ ...expected, gradients });
  });

  it("computes the norm of an array, and detects what is not finite", async () => {
    const sessions = createSessions(2);
    const array = new Float32Array(100_000).fill(2);
    expect(await squaredNorm(sessions, array)).toBe(400_000);
    array[99_999] = Number.NaN;
    expect(await squaredNorm(sessions, array)).toBeNaN();
    array[99_999] = 1e20;
    expect(await squaredNorm(sessions, array)).toBe(Number.POSITIVE_INFINITY);
    await sessions.dispose();
  });

  it("adds an array in place", () => {
    const sum = Float32Array.from({ length: 70_001 }, (_, i) => i);
    addArray(sum, new Float32Array(70_001).fill(3));
    expect(sum).toEqual(Float32Array.from({ length: 70_001 }, (_, i) => i + 3));
  });

  it("rejects settings that could ruin the weights", () => {
    expect(() => checkAdamParams({ learningRate: Number.POSITIVE_INFINITY })).toThrow(
      /learningRate/,
    );
    expect(() => checkAdamParams({ learningRate: 1, beta2: 1 })).toThrow(/beta2/);
    expect(() => checkAdamParams({ learningRate: 1, eps: 0 })).toThrow(/eps/);
    expect(() => checkAdamParams({ learningRate: 1, gradClipNorm: 0 })).toThrow(/gradClipNorm/);
    expect(() => checkAdamParams({ learningRate: 1e-3 })).not.toThrow();
  });
});

import { dose } from "@pawl/core/dose-testing.js";
import { createRandom } from "@pawl/core/random.js";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { differentiate } from "./gradients.js";
import type { Tensor } from "./graph.js";
import { gradientError, randomFloats, runGraph, type TestInput } from "./graph-testing.js";
import {
  attention,
  blockMasks,
  causalMask,
  geglu,
  predict,
  rmsNorm,
  rotate,
  swiglu,
} from "./layers.js";
import { cast, elementwise, fusedMatMul } from "./operators.js";
import {
  add,
  linear,
  lookup,
  multiply,
  repeatHeads,
  reshape,
  selectRows,
  transpose,
} from "./ops.js";

const TOLERANCE = 1e-3;
const size = fc.integer({ min: 1, max: 5 });
const seed = fc.integer({ min: 0, max: 1e6 });

/** An operation with random inputs of random shapes. */
interface Case {
  readonly inputs: (sizes: readonly number[], noise: () => number) => readonly TestInput[];
  readonly apply: (inputs: readonly Tensor[]) => readonly Tensor[];
}

function floats(shape: readonly number[], noise: () => number): TestInput {
  return { shape, data: randomFloats(shape, noise) };
}

function indices(shape: readonly number[], below: number, noise: () => number): TestInput {
  const count = shape.reduce((product, n) => product * n, 1);
  return { shape, data: Int32Array.from({ length: count }, () => Math.floor(noise() * below)) };
}

function positions(rows: number, length: number): TestInput {
  const data = Int32Array.from({ length: rows * length }, (_, i) => i % length);
  return { shape: [rows, length], data };
}

const cases: Readonly<Record<string, Case>> = {
  "add, broadcasting": {
    inputs: ([a, b, c], noise) => [floats([a!, b!, c!], noise), floats([b!, 1], noise)],
    apply: ([x, y]) => [add(x!, y!)],
  },
  "multiply, broadcasting": {
    inputs: ([a, b, c], noise) => [floats([b!, 1], noise), floats([a!, b!, c!], noise)],
    apply: ([x, y]) => [multiply(x!, y!)],
  },
  linear: {
    inputs: ([n, a, b], noise) => [floats([n!, a!], noise), floats([b!, a!], noise)],
    apply: ([x, w]) => [linear(x!, w!)],
  },
  "linear, with a merged adapter": {
    inputs: ([n, a, b], noise) => [
      floats([n!, a!], noise),
      { ...floats([b!, a!], noise), constant: true },
      floats([2, a!], noise),
      floats([b!, 2], noise),
    ],
    apply: ([x, base, down, up]) => {
      const change = fusedMatMul(up!, down!, { scale: 0.7 });
      const merged = elementwise("Add", base!, change);
      return [linear(x!, merged, { down: down!, up: up!, scale: 0.7 })];
    },
  },
  reshape: {
    inputs: ([a, b, c], noise) => [floats([a!, b!, c!], noise)],
    apply: ([x]) => {
      const [a, b, c] = x!.shape as readonly [number, number, number];
      return [multiply(reshape(x!, [c, a * b]), reshape(x!, [c, a * b]))];
    },
  },
  transpose: {
    inputs: ([a, b, c], noise) => [floats([a!, b!, c!], noise), floats([c!, a!, b!], noise)],
    apply: ([x, y]) => [multiply(transpose(x!, [2, 0, 1]), y!)],
  },
  "lookup, with repeated ids": {
    inputs: ([n, d, k], noise) => [floats([n!, d!], noise), indices([k! * 3], n!, noise)],
    apply: ([table, ids]) => [lookup(table!, ids!)],
  },
  "chosen rows": {
    inputs: ([n, d], noise) => [
      floats([n! + 1, d!], noise),
      { shape: [n!], data: Int32Array.from({ length: n! }, (_, i) => n! - i) },
    ],
    apply: ([x, index]) => [selectRows(x!, cast(index!, "int64"))],
  },
  "repeated heads": {
    inputs: ([a, b, c], noise) => [
      floats([a!, b!, c!, 2], noise),
      floats([a!, b! * 3, c!, 2], noise),
    ],
    apply: ([x, y]) => [multiply(repeatHeads(x!, 3), y!)],
  },
  RMSNorm: {
    inputs: ([n, d], noise) => [floats([n!, d! + 1], noise), floats([d! + 1], noise)],
    apply: ([x, w]) => [rmsNorm(x!, w!, 0.1)],
  },
  rotation: {
    inputs: ([rows, length, heads], noise) => [
      floats([rows!, length!, heads! * 4], noise),
      positions(rows!, length!),
      { ...floats([length!, 2], noise), constant: true },
      { ...floats([length!, 2], noise), constant: true },
    ],
    apply: ([x, at, cos, sin]) => [
      rotate(x!, cast(at!, "int64"), { cos: cos!, sin: sin! }, (x!.shape[2] as number) / 4),
    ],
  },
  SwiGLU: {
    inputs: ([a, b], noise) => [floats([a!, b!], noise), floats([a!, b!], noise)],
    apply: ([gate, up]) => [swiglu(gate!, up!)],
  },
  GeGLU: {
    inputs: ([a, b], noise) => [floats([a!, b!], noise), floats([a!, b!], noise)],
    apply: ([gate, up]) => [geglu(gate!, up!)],
  },
  "causal attention": {
    inputs: ([rows, heads, length], noise) => [
      floats([rows!, heads!, length!, 3], noise),
      floats([rows!, heads!, length!, 3], noise),
      floats([rows!, heads!, length!, 3], noise),
      positions(rows!, length!),
    ],
    apply: ([q, k, v, at]) => [attention(q!, k!, v!, [causalMask(at!, at!)], 0.7)],
  },
  "causal attention in blocks": {
    inputs: ([rows, heads, length], noise) => [
      floats([rows!, heads!, length! * 3, 2], noise),
      floats([rows!, heads!, length! * 3, 2], noise),
      floats([rows!, heads!, length! * 3, 2], noise),
      positions(rows!, length! * 3),
    ],
    apply: ([q, k, v, at]) => [attention(q!, k!, v!, blockMasks(at!, 3), 0.7)],
  },
  "attention in a window, in blocks": {
    inputs: ([rows, heads, length], noise) => [
      floats([rows!, heads!, length! * 2, 2], noise),
      floats([rows!, heads!, length! * 2, 2], noise),
      floats([rows!, heads!, length! * 2, 2], noise),
      positions(rows!, length! * 2),
    ],
    apply: ([q, k, v, at]) => [attention(q!, k!, v!, blockMasks(at!, 2, 3), 0.7)],
  },
  "log-probability": {
    inputs: ([n, d, vocabulary], noise) => [
      floats([n!, d!], noise),
      floats([vocabulary! + 1, d!], noise),
      indices([n!, 1], vocabulary! + 1, noise),
    ],
    apply: ([hidden, w, ids]) => [predict(hidden!, w!, ids!, { entropy: false }).logprob],
  },
  "log-probability and entropy": {
    inputs: ([n, d, vocabulary], noise) => [
      floats([n!, d!], noise),
      floats([vocabulary! + 1, d!], noise),
      indices([n!, 1], vocabulary! + 1, noise),
    ],
    apply: ([hidden, w, ids]) => {
      const { logprob, entropy } = predict(hidden!, w!, ids!, { entropy: true });
      return [logprob, entropy!];
    },
  },
};

describe("derivatives agree with finite differences", () => {
  for (const [name, { inputs, apply }] of Object.entries(cases))
    it(name, async () => {
      await fc.assert(
        fc.asyncProperty(size, size, size, seed, async (a, b, c, start) => {
          const noise = createRandom(start).next;
          const error = await gradientError(inputs([a, b, c], noise), apply, noise);
          expect(error).toBeLessThan(TOLERANCE);
        }),
        { numRuns: dose(12, 4) },
      );
    });
});

describe("gradients", () => {
  it("are added to those accumulated before", async () => {
    const inputs: readonly TestInput[] = [
      { shape: [2, 2], data: Float32Array.of(1, 2, 3, 4) },
      { shape: [1, 2], data: Float32Array.of(5, 6) },
      { shape: [1, 2], data: Float32Array.of(100, 200) },
    ];
    const [sum] = await runGraph(inputs, (graph, [x, weight, before]) => {
      const y = linear(x!, weight!);
      return [...differentiate(graph, new Map([[y, y]]), new Map([[weight!, before!]])).values()];
    });
    // y = (17, 39), so yᵀ x = (17 · 1 + 39 · 3, 17 · 2 + 39 · 4).
    expect([...sum!]).toEqual([100 + 134, 200 + 190]);
  });

  it("do not lose sums if many tokens share one row", async () => {
    const count = 20_000;
    const inputs: readonly TestInput[] = [
      { shape: [2, 4], data: new Float32Array(8) },
      { shape: [count], data: Int32Array.from({ length: count }, (_, i) => i % 2) },
      { shape: [count, 4], data: new Float32Array(count * 4).fill(1) },
    ];
    const [sum] = await runGraph(inputs, (graph, [table, ids, ones]) => {
      const rows = lookup(table!, ids!);
      return [
        ...differentiate(graph, new Map([[rows, ones!]]), new Map([[table!, undefined]])).values(),
      ];
    });
    expect([...sum!]).toEqual(new Array(8).fill(count / 2));
  });
});

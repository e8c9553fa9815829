import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { EngineError } from "../engine.js";
import { readLlama2c } from "./llama2c.js";
import { checkTensors, EMBEDDING, FINAL_NORM, layerNames, OUTPUT_HEAD } from "./tensor-names.js";

const SIZES = { hidden: 8, mlp: 3, layers: 2, heads: 2, kvHeads: 1, vocabulary: 5, context: 6 };

/** A file whose numbers count up from 0, so that a number tells where it stood. */
function countingFile({ tied }: { readonly tied: boolean }): Uint8Array {
  const { hidden, mlp, layers, heads, kvHeads, vocabulary, context } = SIZES;
  const header = [hidden, mlp, layers, heads, kvHeads, tied ? vocabulary : -vocabulary, context];
  const numbers =
    vocabulary * hidden * (tied ? 1 : 2) +
    layers * (2 * hidden + 2 * hidden * hidden + 2 * 4 * hidden + 3 * mlp * hidden) +
    hidden +
    context * 4;
  const body = Float32Array.from({ length: numbers }, (_, i) => i);
  return Buffer.concat([Buffer.from(Int32Array.from(header).buffer), Buffer.from(body.buffer)]);
}

const firstNumbers = (data: Float32Array, width: number) =>
  Array.from({ length: data.length / width }, (_, row) => data[row * width]);

describe("readLlama2c", () => {
  const { config, tensors } = readLlama2c(countingFile({ tied: true }), "model.bin");
  const first = (name: string) => tensors.get(name)!.data[0];

  it("reads the sizes", () => {
    expect(config).toEqual({
      vocabularySize: 5,
      hiddenSize: 8,
      layers: 2,
      heads: 2,
      kvHeads: 1,
      headSize: 4,
      mlpSize: 3,
      maxContext: 6,
      ropeTheta: 10_000,
      normEps: 1e-5,
      tiedEmbeddings: true,
      qkvBias: false,
    });
  });

  it("gives exactly the tensors of the model", () => {
    const headers = [...tensors].map(
      ([name, { shape }]) => [name, { shape, dtype: "F32" }] as const,
    );
    expect(() => checkTensors(config, new Map(headers), "model.bin")).not.toThrow();
    for (const { shape, data } of tensors.values())
      expect(data.length).toBe(shape.reduce((product, size) => product * size, 1));
  });

  it("finds each tensor in its place", () => {
    const [zero, one] = [layerNames(0), layerNames(1)];
    expect(first(EMBEDDING)).toBe(0);
    expect(first(zero.attentionNorm)).toBe(40);
    expect(first(one.attentionNorm)).toBe(48);
    expect(first(zero.query)).toBe(56);
    expect(first(one.query)).toBe(120);
    expect(first(zero.key)).toBe(184);
    expect(first(zero.value)).toBe(248);
    expect(first(one.value)).toBe(280);
    expect(first(zero.attentionOutput)).toBe(312);
    expect(first(zero.mlpNorm)).toBe(440);
    expect(first(zero.gate)).toBe(456);
    expect(first(zero.down)).toBe(504);
    expect(first(zero.up)).toBe(552);
    expect(first(one.up)).toBe(576);
    expect(first(FINAL_NORM)).toBe(600);
  });

  it("moves the rotated pairs of each head into halves", () => {
    // Rows of the file, two heads of four: (0,1) (2,3) and (4,5) (6,7) rotate together.
    expect(firstNumbers(tensors.get(layerNames(0).query)!.data, 8)).toEqual(
      [0, 2, 1, 3, 4, 6, 5, 7].map((row) => 56 + 8 * row),
    );
    expect(firstNumbers(tensors.get(layerNames(0).key)!.data, 8)).toEqual(
      [0, 2, 1, 3].map((row) => 184 + 8 * row),
    );
    expect(firstNumbers(tensors.get(layerNames(0).value)!.data, 8)).toEqual(
      [0, 1, 2, 3].map((row) => 248 + 8 * row),
    );
  });

  it("leaves rotated dot products as they were", () => {
    const anyHead = fc.array(fc.integer({ min: -9, max: 9 }), { minLength: 4, maxLength: 4 });
    const order = [0, 2, 1, 3];
    const rotate = (x: readonly number[], [i, j]: readonly [number, number], angle: number) => {
      const result = [...x];
      result[i] = x[i]! * Math.cos(angle) - x[j]! * Math.sin(angle);
      result[j] = x[i]! * Math.sin(angle) + x[j]! * Math.cos(angle);
      return result;
    };
    const rotated = (
      x: readonly number[],
      pairs: readonly (readonly [number, number])[],
      at: number,
    ) => pairs.reduce((y, pair, i) => rotate(y, pair, at / 10_000 ** (i / 2)), x);
    const dot = (x: readonly number[], y: readonly number[]) =>
      x.reduce((sum, value, i) => sum + value * y[i]!, 0);
    fc.assert(
      fc.property(anyHead, anyHead, fc.nat(50), fc.nat(50), (q, k, i, j) => {
        const neighbours = [
          [0, 1],
          [2, 3],
        ] as const;
        const halves = [
          [0, 2],
          [1, 3],
        ] as const;
        const reorder = (x: readonly number[]) => order.map((row) => x[row]!);
        const before = dot(rotated(q, neighbours, i), rotated(k, neighbours, j));
        const after = dot(rotated(reorder(q), halves, i), rotated(reorder(k), halves, j));
        expect(after).toBeCloseTo(before, 9);
      }),
    );
  });

  it("reads an output head of its own, past the tables of the rotation", () => {
    const untied = readLlama2c(countingFile({ tied: false }), "model.bin");
    expect(untied.config.tiedEmbeddings).toBe(false);
    expect(untied.tensors.get(OUTPUT_HEAD)!.data[0]).toBe(600 + 8 + 24);
  });

  it("reads bytes that are not aligned", () => {
    const shifted = new Uint8Array([0, ...countingFile({ tied: true })]).subarray(1);
    expect(readLlama2c(shifted, "model.bin").tensors).toEqual(tensors);
  });

  it("refuses other files", () => {
    const file = countingFile({ tied: true });
    expect(() => readLlama2c(file.subarray(0, 20), "m.bin")).toThrow(/m\.bin: .*found 20/);
    expect(() => readLlama2c(file.subarray(0, -4), "m.bin")).toThrow(
      /header \(2 layers of width 8, vocabulary 5\) announces 2556 bytes, but there are 2552/,
    );
    expect(() => readLlama2c(Buffer.from("x".repeat(99)), "m.bin")).toThrow(/no sizes of a model/);
    const negative = Buffer.from(file);
    negative.writeInt32LE(-2, 8);
    expect(() => readLlama2c(negative, "m.bin")).toThrow(
      /header reads 8, 3, -2, .*no sizes of a model/,
    );
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 80 }), (bytes) => {
        expect(() => readLlama2c(bytes, "m.bin")).toThrow(EngineError);
      }),
    );
  });
});

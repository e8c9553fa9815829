/** A matrix quantised twice, in the formats that are read; and matrices that are two. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { openGguf } from "./gguf-file.js";
import { writeGguf } from "./gguf-testing.js";
import { tieMatrices } from "./gguf-tied.js";

const folder = mkdtempSync(join(tmpdir(), "pawl-tied-"));
afterAll(() => rmSync(folder, { recursive: true }));

const [ROWS, WIDTH] = [120, 256];
/** Numbers that are nearly normal, from sums of a fixed sequence. */
function normal(seed: number): Float32Array {
  let state = seed;
  const uniform = () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32 - 0.5;
  };
  return Float32Array.from({ length: ROWS * WIDTH }, () =>
    [1, 2, 3, 4, 5, 6].reduce((sum) => sum + uniform(), 0),
  );
}

function f16(value: number): Buffer {
  const bytes = Buffer.alloc(2);
  const size = Math.abs(value);
  // Below 2^-14 there are steps of 2^-24.
  const exponent = Math.max(Math.floor(Math.log2(size)), -15);
  const fraction = (size / 2 ** exponent - 1) * 1024;
  const bits = exponent === -15 ? size * 2 ** 24 : ((exponent + 15) << 10) + fraction;
  bytes.writeUInt16LE(Math.round(bits) + (value < 0 ? 0x8000 : 0));
  return bytes;
}

type Quantise = (block: Float32Array) => Buffer;
const largest = (block: Float32Array): number => Math.max(...block.map(Math.abs), 1e-6);
const nibbles = (quants: readonly number[]): Buffer =>
  Buffer.from(quants.slice(0, 16).map((low, i) => (low & 15) | ((quants[i + 16]! & 15) << 4)));
const clamp = (value: number, most: number): number =>
  Math.min(Math.max(Math.round(value), 0), most);

/** The formats by name: number, weights of a block, and how a block is written. */
const formats: Readonly<Record<string, readonly [number, number, Quantise]>> = {
  F32: [0, 1, (block) => Buffer.from(new Float32Array(block).buffer)],
  F16: [1, 1, (block) => f16(block[0]!)],
  BF16: [30, 1, (block) => Buffer.from(new Float32Array(block).buffer).subarray(2)],
  Q4_0: [
    2,
    32,
    (block) => {
      const d = largest(block) / 8;
      return Buffer.concat([f16(d), nibbles(Array.from(block, (x) => clamp(x / d + 8, 15)))]);
    },
  ],
  Q4_1: [
    3,
    32,
    (block) => {
      const low = Math.min(...block);
      const d = (Math.max(...block) - low) / 15;
      const quants = Array.from(block, (x) => clamp((x - low) / d, 15));
      return Buffer.concat([f16(d), f16(low), nibbles(quants)]);
    },
  ],
  Q5_0: [
    6,
    32,
    (block) => {
      const d = largest(block) / 16;
      const quants = Array.from(block, (x) => clamp(x / d + 16, 31));
      const high = Buffer.alloc(4);
      quants.forEach((quant, i) => {
        high[i >> 3]! |= (quant >> 4) << (i & 7);
      });
      return Buffer.concat([f16(d), high, nibbles(quants)]);
    },
  ],
  Q8_0: [
    8,
    32,
    (block) => {
      const d = largest(block) / 127;
      return Buffer.concat([f16(d), Buffer.from(Int8Array.from(block, (x) => Math.round(x / d)))]);
    },
  ],
  Q6_K: [
    14,
    256,
    (block) => {
      const bytes = Buffer.alloc(210);
      const d = largest(block) / 32 / 127;
      for (let j = 0; j < 16; j++)
        bytes[192 + j] = Math.min(
          127,
          Math.ceil(largest(block.subarray(16 * j, 16 * j + 16)) / 32 / d),
        );
      block.forEach((x, i) => {
        const quant = clamp(x / (d * bytes[192 + (i >> 4)]!) + 32, 63);
        const [part, row, column] = [i >> 7, (i >> 5) & 3, i & 31];
        bytes[64 * part + 32 * (row & 1) + column]! |= (quant & 15) << (row < 2 ? 0 : 4);
        bytes[128 + 32 * part + column]! |= (quant >> 4) << (2 * row);
      });
      f16(d).copy(bytes, 208);
      return bytes;
    },
  ],
};

function write(matrices: Readonly<Record<string, readonly [string, Float32Array]>>): string {
  const file = join(folder, "two.gguf");
  const tensors = Object.entries(matrices).map(([name, [format, values]]) => {
    const [type, weights, quantise] = formats[format]!;
    const blocks = Array.from({ length: values.length / weights }, (_, i) =>
      quantise(values.subarray(i * weights, (i + 1) * weights)),
    );
    return { name, dimensions: [WIDTH, ROWS], type, data: Buffer.concat(blocks) };
  });
  writeGguf(file, {}, tensors);
  return file;
}

const matrix = normal(7);
const two = (embedding: string, output: string, values = matrix): string =>
  write({ "token_embd.weight": [embedding, matrix], "output.weight": [output, values] });

describe("an output matrix beside the embedding", () => {
  const pairs = Object.keys(formats).flatMap((a) =>
    Object.keys(formats).map((b) => [a, b] as const),
  );
  it.each(pairs)("is tied if it is the same, as %s and %s", async (embedding, output) => {
    const tied = await tieMatrices(openGguf(two(embedding, output)));
    const bits = (name: string) =>
      ({ F32: 24, F16: 11, BF16: 8 })[name] ?? Number(name.slice(1, 2));
    const kept = tied!.gguf.tensors.get("token_embd.weight")!;
    expect(kept.format.name).toBe(bits(output) >= bits(embedding) ? output : embedding);
    expect(tied!.gguf.tensors.has("output.weight")).toBe(false);
    expect(tied!.notice).toContain("one matrix quantised twice (cosine ");
  });

  it("is its own if it was trained apart, by as little as formats let one see", async () => {
    const noise = normal(11);
    const apart = (share: number) => matrix.map((value, i) => value + share * noise[i]!);
    expect(await tieMatrices(openGguf(two("Q4_0", "Q8_0", normal(3))))).toBeUndefined();
    expect(await tieMatrices(openGguf(two("Q4_0", "Q6_K", apart(0.3))))).toBeUndefined();
    expect(await tieMatrices(openGguf(two("Q8_0", "Q8_0", apart(0.05))))).toBeUndefined();
    expect(await tieMatrices(openGguf(two("F32", "F32", apart(0.0001))))).toBeUndefined();
    // A few rows of new tokens are enough.
    const rows = matrix.map((value, i) => (i < 4 * WIDTH ? noise[i]! : value));
    expect(await tieMatrices(openGguf(two("Q4_0", "Q8_0", rows)))).toBeUndefined();
    expect(await tieMatrices(openGguf(write({ "token_embd.weight": ["F16", matrix] })))).toBe(
      undefined,
    );
  });
});

import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createRandom } from "@pawl/core/random.js";
import { describe, expect, it } from "vitest";
import { BLOCK_FORMATS, type BlockFormat, formatName } from "./gguf-blocks.js";

const format = (name: string): BlockFormat =>
  [...BLOCK_FORMATS.values()].find((one) => one.name === name)!;

function decode(name: string, bytes: readonly number[]): number[] {
  const { weights, bytes: size, decode: read } = format(name);
  expect(bytes.length % size).toBe(0);
  const target = new Float32Array((bytes.length / size) * weights);
  read(Uint8Array.from(bytes), target);
  return [...target];
}

/** Half-precision patterns, low byte first. */
const HALF = [0x00, 0x38];
const ONE = [0x00, 0x3c];
const TWO = [0x00, 0x40];
const upTo = (n: number) => Array.from({ length: n }, (_, i) => i);
/** 16 bytes whose low halves count up and whose high halves count down. */
const NIBBLES = upTo(16).map((i) => i | ((15 - i) << 4));

// Computed by hand from the layouts.
describe("a block", () => {
  it("of Q4_0 is scale × (quant − 8), low halves first", () => {
    expect(decode("Q4_0", [...HALF, ...NIBBLES])).toEqual([
      ...upTo(16).map((i) => (i - 8) / 2),
      ...upTo(16).map((i) => (7 - i) / 2),
    ]);
  });

  it("of Q4_1 is scale × quant + minimum", () => {
    expect(decode("Q4_1", [...HALF, ...TWO, ...NIBBLES])).toEqual([
      ...upTo(16).map((i) => i / 2 + 2),
      ...upTo(16).map((i) => (15 - i) / 2 + 2),
    ]);
  });

  it("of Q5_0 and Q5_1 has a fifth bit", () => {
    // Bits 0, 9 and 31 are set.
    const bits = [1, 2, 0, 128];
    const fifth = (i: number) => ([0, 9, 31].includes(i) ? 16 : 0);
    const quants = [...upTo(16).map((i) => i), ...upTo(16).map((i) => 15 - i)];
    expect(decode("Q5_0", [...HALF, ...bits, ...NIBBLES])).toEqual(
      quants.map((quant, i) => (quant + fifth(i) - 16) / 2),
    );
    expect(decode("Q5_1", [...HALF, ...TWO, ...bits, ...NIBBLES])).toEqual(
      quants.map((quant, i) => (quant + fifth(i)) / 2 + 2),
    );
  });

  it("of Q8_0 is scale × signed byte", () => {
    expect(decode("Q8_0", [...HALF, ...upTo(32).map((i) => (i - 16) & 255)])).toEqual(
      upTo(32).map((i) => (i - 16) / 2),
    );
  });

  // Scales 1 to 4 and 33 to 36 of the sub-blocks, minimums 5 to 8 and 49 to 52: 6 bits each, the
  // last four of each split into 4 low bits and 2 high bits, which stand above the first four.
  const SCALES = [1, 2, 3, 4, 33, 34, 35, 36];
  const MINIMUMS = [5, 6, 7, 8, 49, 50, 51, 52];
  const packed = [
    ...upTo(4).map((j) => SCALES[j]! | ((SCALES[j + 4]! >> 4) << 6)),
    ...upTo(4).map((j) => MINIMUMS[j]! | ((MINIMUMS[j + 4]! >> 4) << 6)),
    ...upTo(4).map((j) => (SCALES[j + 4]! & 15) | ((MINIMUMS[j + 4]! & 15) << 4)),
  ];

  it("of Q4_K has eight sub-blocks with scale and minimum", () => {
    const quants = upTo(128).map((i) => (i % 16) | (((i + 3) % 16) << 4));
    expect(decode("Q4_K", [...HALF, ...TWO, ...packed, ...quants])).toEqual(
      upTo(256).map((i) => {
        const j = i >> 5;
        const quant = ((i % 32) + (j % 2) * 3) % 16;
        return (SCALES[j]! * quant) / 2 - 2 * MINIMUMS[j]!;
      }),
    );
  });

  it("of Q5_K has a fifth bit for each sub-block", () => {
    const quants = upTo(128).map((i) => (i % 16) | (((i + 3) % 16) << 4));
    // Bit j of byte i belongs to weight i of sub-block j.
    const bits = upTo(32).map((i) => (i === 5 ? 0b1000_0010 : 0));
    expect(decode("Q5_K", [...ONE, ...ONE, ...packed, ...bits, ...quants])).toEqual(
      upTo(256).map((i) => {
        const j = i >> 5;
        const fifth = i % 32 === 5 && (j === 1 || j === 7) ? 16 : 0;
        const quant = (((i % 32) + (j % 2) * 3) % 16) + fifth;
        return SCALES[j]! * quant - MINIMUMS[j]!;
      }),
    );
  });

  it("of Q6_K has 4 low bits, 2 high bits and signed scales", () => {
    const low = upTo(128).map((i) => (i < 64 ? 0x21 : 0x43));
    const high = upTo(64).map((i) => (i < 32 ? 0b11_10_01_00 : 0));
    const scales = upTo(16).map((i) => (i - 8) & 255);
    // In the first half the low bits are 1, 1, 2, 2 and the high ones 0, 1, 2, 3.
    const quants = [1, 17, 34, 50, 3, 3, 4, 4];
    expect(decode("Q6_K", [...low, ...high, ...scales, ...HALF])).toEqual(
      upTo(256).map((i) => ((quants[i >> 5]! - 32) * ((i >> 4) - 8)) / 2),
    );
  });

  it("of Q8_0 is encoded to 127 steps either way, of plain floats to the nearest one", () => {
    const written = (name: string, weights: readonly number[]) => [
      ...format(name).encode!(Float32Array.from(weights)),
    ];
    // The largest is 63.5, so a step is a half; ties go away from zero.
    const weights = [63.5, -63.5, 0.5, -0.25, 0.25, 0.24, ...Array(26).fill(-7)];
    const steps = [127, -127, 1, -1, 1, 0, ...Array(26).fill(-14)];
    expect(written("Q8_0", weights)).toEqual([...HALF, ...steps.map((one) => one & 255)]);
    expect(written("Q8_0", Array(64).fill(0))).toEqual(Array(68).fill(0));
    expect(written("F16", [0.5, 2])).toEqual([...HALF, ...TWO]);
    expect(decode("F32", written("F32", [1.5, -2]))).toEqual([1.5, -2]);
  });

  it("of plain floats needs no alignment", () => {
    const bytes = new Uint8Array([0, ...new Uint8Array(Float32Array.of(1.5, -2).buffer)]);
    const target = new Float32Array(2);
    format("F32").decode(bytes.subarray(1), target);
    expect([...target]).toEqual([1.5, -2]);
    expect(decode("F16", [...HALF, ...TWO])).toEqual([0.5, 2]);
    expect(decode("BF16", [0x80, 0x3f, 0x00, 0xc0])).toEqual([1, -2]);
  });

  it("has a name even if it cannot be read", () => {
    expect([12, 10, 99].map(formatName)).toEqual(["Q4_K", "Q2_K", "number 99"]);
  });
});

const python = process.env.PAWL_PYTHON ?? "python3";
const there = spawnSync(python, ["-c", "import gguf, numpy"]).status === 0;
if (!there) console.warn(`no gguf package in ${python}: parity of blocks is not checked`);

describe.skipIf(!there)("parity with Python's gguf, where PAWL_PYTHON or python3 has it", () => {
  it.each([...BLOCK_FORMATS])("format %i", (type, { bytes, weights, decode: read }) => {
    const random = createRandom(type);
    const count = 64;
    const source = Uint8Array.from({ length: count * bytes }, () => random.int(256));
    // Scales are finite: the exponent's upper bit is cleared in every pair of bytes.
    for (let i = 1; i < source.length; i += bytes === 4 ? 4 : 2) source[i]! &= 0xbf;
    if (bytes === 4) for (let i = 3; i < source.length; i += 4) source[i]! &= 0xbf;
    if (bytes === 210) for (let i = 209; i < source.length; i += 210) source[i]! &= 0xbf;
    const target = new Float32Array(count * weights);
    read(source, target);
    const folder = mkdtempSync(join(tmpdir(), "blocks-"));
    try {
      writeFileSync(join(folder, "in"), source);
      const script = `
import sys, numpy, gguf
raw = numpy.fromfile(sys.argv[1] + "/in", dtype=numpy.uint8)
kind = gguf.GGMLQuantizationType(int(sys.argv[2]))
gguf.quants.dequantize(raw.reshape(${count}, -1) , kind).astype(numpy.float32).tofile(sys.argv[1] + "/out")`;
      const ran = spawnSync(python, ["-c", script, folder, String(type)], { encoding: "utf8" });
      expect(ran.stderr).toBe("");
      expect(Buffer.from(target.buffer).equals(readFileSync(join(folder, "out")))).toBe(true);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  const writable = [...BLOCK_FORMATS].filter(([, { encode }]) => encode !== undefined);
  it.each(writable)("format %i, encoded", (type, { encode }) => {
    const random = createRandom(type);
    // Sizes from those of halves without a leading bit to some hundred.
    const source = Float32Array.from(
      { length: 64 * 256 },
      (_, i) => (random.next() - 0.5) * 2 ** (8 - (i >> 9)),
    );
    const folder = mkdtempSync(join(tmpdir(), "blocks-"));
    try {
      writeFileSync(join(folder, "in"), new Uint8Array(source.buffer));
      const script = `
import sys, numpy, gguf
raw = numpy.fromfile(sys.argv[1] + "/in", dtype=numpy.float32)
kind = gguf.GGMLQuantizationType(int(sys.argv[2]))
gguf.quants.quantize(raw.reshape(64, -1), kind).tofile(sys.argv[1] + "/out")`;
      const ran = spawnSync(python, ["-c", script, folder, String(type)], { encoding: "utf8" });
      expect(ran.stderr).toBe("");
      expect(Buffer.from(encode!(source)).equals(readFileSync(join(folder, "out")))).toBe(true);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

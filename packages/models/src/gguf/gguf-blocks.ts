/**
 * The number formats of GGUF tensors, each decoded to 32-bit floats; those that are written, also
 * encoded.
 *
 * Quantised formats store blocks: some weights that share one or two 16-bit scales. Products are
 * computed in 64 bits and rounded once, which gives the same 32 bits as the reference
 * implementation.
 */
import {
  decodeBfloat16,
  decodeFloat16,
  encodeFloat16,
  float16Value,
} from "../weights/half-precision.js";

/** A number format: how many bytes a block takes, how many weights it holds, and how to read them. */
export interface BlockFormat {
  readonly name: string;
  readonly weights: number;
  readonly bytes: number;
  /** Decodes whole blocks; `source` starts with the first one. */
  decode(source: Uint8Array, target: Float32Array): void;
  /** Encodes whole blocks, if the format is written. */
  readonly encode?: (source: Float32Array) => Uint8Array;
}

/** Decodes the block that starts at `at` into the weights that start at `to`. */
type Block = (source: Uint8Array, at: number, target: Float32Array, to: number) => void;

function blocks(name: string, weights: number, bytes: number, block: Block): BlockFormat {
  return {
    name,
    weights,
    bytes,
    decode(source, target) {
      for (let at = 0, to = 0; to < target.length; at += bytes, to += weights)
        block(source, at, target, to);
    },
  };
}

const half = (source: Uint8Array, at: number): number =>
  float16Value(source[at]! | (source[at + 1]! << 8));

/** A copy is aligned, which a view into a file's bytes need not be. */
const aligned = (source: Uint8Array): ArrayBuffer => source.slice().buffer as ArrayBuffer;

/** 32 weights of 4 bits: the low halves of 16 bytes, then their high halves. */
function nibbles(name: string, bytes: number, minimum: boolean): BlockFormat {
  return blocks(name, 32, bytes, (source, at, target, to) => {
    const scale = half(source, at);
    const centre = minimum ? 0 : 8;
    // Adding -0 changes no number, not even the sign of 0.
    const low = minimum ? half(source, at + 2) : -0;
    const quants = at + (minimum ? 4 : 2);
    for (let i = 0; i < 16; i++) {
      const both = source[quants + i]!;
      target[to + i] = scale * ((both & 15) - centre) + low;
      target[to + 16 + i] = scale * ((both >> 4) - centre) + low;
    }
  });
}

/** The same with a fifth bit for each weight, in four bytes before the quants. */
function nibblesAndBits(name: string, bytes: number, minimum: boolean): BlockFormat {
  return blocks(name, 32, bytes, (source, at, target, to) => {
    const scale = half(source, at);
    const centre = minimum ? 0 : 16;
    const low = minimum ? half(source, at + 2) : -0;
    const bits = at + (minimum ? 4 : 2);
    const fifth = (i: number) => ((source[bits + (i >> 3)]! >> (i & 7)) & 1) << 4;
    for (let i = 0; i < 16; i++) {
      const both = source[bits + 4 + i]!;
      target[to + i] = scale * (((both & 15) | fifth(i)) - centre) + low;
      target[to + 16 + i] = scale * (((both >> 4) | fifth(16 + i)) - centre) + low;
    }
  });
}

/** The 6-bit scale and minimum of sub-block `j`; eight of each are packed into 12 bytes. */
function scaleAndMinimum(source: Uint8Array, at: number, j: number): readonly [number, number] {
  const byte = (i: number) => source[at + i]!;
  if (j < 4) return [byte(j) & 63, byte(j + 4) & 63];
  return [
    (byte(j + 4) & 15) | ((byte(j - 4) >> 6) << 4),
    (byte(j + 4) >> 4) | ((byte(j) >> 6) << 4),
  ];
}

/** 256 weights of 4 bits in eight sub-blocks; with `fifth`, one more bit each in 32 bytes. */
function superBlock(name: string, bytes: number, fifth: boolean): BlockFormat {
  return blocks(name, 256, bytes, (source, at, target, to) => {
    const scale = half(source, at);
    const minimum = half(source, at + 2);
    const bits = at + 16;
    const quants = fifth ? bits + 32 : bits;
    for (let j = 0; j < 8; j++) {
      const [size, low] = scaleAndMinimum(source, at + 4, j);
      const shift = 4 * (j & 1);
      for (let i = 0; i < 32; i++) {
        const quant = (source[quants + 32 * (j >> 1) + i]! >> shift) & 15;
        const bit = fifth ? ((source[bits + i]! >> j) & 1) << 4 : 0;
        target[to + 32 * j + i] = scale * size * (quant | bit) - minimum * low;
      }
    }
  });
}

/** 256 weights of 6 bits: 4 low bits, 2 high bits, and an 8-bit scale for every 16 of them. */
const q6k = blocks("Q6_K", 256, 210, (source, at, target, to) => {
  const scale = half(source, at + 208);
  for (let i = 0; i < 256; i++) {
    const part = i >> 7;
    const row = (i >> 5) & 3;
    const column = i & 31;
    const low = source[at + 64 * part + 32 * (row & 1) + column]! >> (row < 2 ? 0 : 4);
    const high = source[at + 128 + 32 * part + column]! >> (2 * row);
    const size = (source[at + 192 + (i >> 4)]! << 24) >> 24;
    target[to + i] = scale * size * (((low & 15) | ((high & 3) << 4)) - 32);
  }
});

const q8 = blocks("Q8_0", 32, 34, (source, at, target, to) => {
  const scale = half(source, at);
  for (let i = 0; i < 32; i++) target[to + i] = scale * ((source[at + 2 + i]! << 24) >> 24);
});

/**
 * The largest weight of a block becomes ±127. Computed in 32 bits as llama.cpp does, so that the bytes
 * are the same: ties go away from zero, and weights are divided by the scale before it is rounded.
 */
function encodeQ8(source: Float32Array): Uint8Array {
  const { fround } = Math;
  const count = source.length / 32;
  const bytes = new Uint8Array(count * 34);
  const scales = new Float32Array(count);
  for (let block = 0; block < count; block++) {
    let largest = 0;
    for (let i = 0; i < 32; i++) largest = Math.max(largest, Math.abs(source[32 * block + i]!));
    const scale = fround(largest / 127);
    const inverse = scale === 0 ? 0 : fround(1 / scale);
    scales[block] = scale;
    for (let i = 0; i < 32; i++) {
      const steps = fround(source[32 * block + i]! * inverse);
      const whole = Math.floor(Math.abs(steps) + 0.5);
      bytes[34 * block + 2 + i] = steps < 0 ? -whole : whole;
    }
  }
  const halves = new Uint16Array(count);
  encodeFloat16(scales, halves);
  for (let block = 0; block < count; block++) {
    bytes[34 * block] = halves[block]!;
    bytes[34 * block + 1] = halves[block]! >> 8;
  }
  return bytes;
}

function encodeHalves(source: Float32Array): Uint8Array {
  const halves = new Uint16Array(source.length);
  encodeFloat16(source, halves);
  return new Uint8Array(halves.buffer);
}

/** The formats that are read, by their number in the file. */
export const BLOCK_FORMATS: ReadonlyMap<number, BlockFormat> = new Map([
  [
    0,
    {
      name: "F32",
      weights: 1,
      bytes: 4,
      decode: (source, target) => target.set(new Float32Array(aligned(source))),
      encode: (source) => new Uint8Array(source.slice().buffer),
    },
  ],
  [
    1,
    {
      name: "F16",
      weights: 1,
      bytes: 2,
      decode: (source, target) => decodeFloat16(new Uint16Array(aligned(source)), target),
      encode: encodeHalves,
    },
  ],
  [2, nibbles("Q4_0", 18, false)],
  [3, nibbles("Q4_1", 20, true)],
  [6, nibblesAndBits("Q5_0", 22, false)],
  [7, nibblesAndBits("Q5_1", 24, true)],
  [8, { ...q8, encode: encodeQ8 }],
  [12, superBlock("Q4_K", 144, false)],
  [13, superBlock("Q5_K", 176, true)],
  [14, q6k],
  [
    30,
    {
      name: "BF16",
      weights: 1,
      bytes: 2,
      decode: (source, target) => decodeBfloat16(new Uint16Array(aligned(source)), target),
    },
  ],
]);

/** Formats that exist but are not read, to name them in errors. */
const OTHER_FORMATS: Readonly<Record<number, string>> = {
  9: "Q8_1",
  10: "Q2_K",
  11: "Q3_K",
  15: "Q8_K",
  16: "IQ2_XXS",
  17: "IQ2_XS",
  18: "IQ3_XXS",
  19: "IQ1_S",
  20: "IQ4_NL",
  21: "IQ3_S",
  22: "IQ2_S",
  23: "IQ4_XS",
  24: "I8",
  25: "I16",
  26: "I32",
  27: "I64",
  28: "F64",
  29: "IQ1_M",
  34: "TQ1_0",
  35: "TQ2_0",
  39: "MXFP4",
};

/** The name of a format by its number, read or not. */
export function formatName(type: number): string {
  return BLOCK_FORMATS.get(type)?.name ?? OTHER_FORMATS[type] ?? `number ${type}`;
}

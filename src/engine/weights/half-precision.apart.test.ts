/*
 * It needs a process of its own: where ONNX Runtime makes the first session of a process in the thread
 * of the tests, that thread takes denormal numbers for zero from then on.
 */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { decodeBfloat16, decodeFloat16, encodeBfloat16, encodeFloat16 } from "./half-precision.js";

const ALL_PATTERNS = Uint16Array.from({ length: 65536 }, (_, i) => i);

describe.each([
  { format: "float16", decode: decodeFloat16, encode: encodeFloat16, infinity: 0x7c00 },
  { format: "bfloat16", decode: decodeBfloat16, encode: encodeBfloat16, infinity: 0x7f80 },
])("$format", ({ decode, encode, infinity }) => {
  const values = new Float32Array(65536);
  decode(ALL_PATTERNS, values);
  const encodeOne = (value: number) => {
    const pattern = new Uint16Array(1);
    encode(Float32Array.of(value), pattern);
    return pattern[0]!;
  };

  it("keeps every pattern, and NaN as NaN", () => {
    const back = new Uint16Array(65536);
    encode(values, back);
    const wrong = ALL_PATTERNS.filter((pattern) =>
      Number.isNaN(values[pattern])
        ? !Number.isNaN(values[back[pattern]!])
        : back[pattern] !== pattern,
    );
    expect([...wrong]).toEqual([]);
  });

  it("rounds to the nearest value, ties to even", () => {
    const anyPattern = fc.integer({ min: 0, max: infinity - 2 });
    fc.assert(
      fc.property(anyPattern, fc.constantFrom(0, 0x8000), (pattern, sign) => {
        // Exact in doubles and in floats: neighbours share all but a few bits.
        const [low, high] = [values[sign | pattern]!, values[sign | (pattern + 1)]!];
        const middle = (low + high) / 2;
        expect(encodeOne(middle)).toBe(sign | (pattern + (pattern & 1)));
        expect(encodeOne(low + (high - low) * 0.25)).toBe(sign | pattern);
        expect(encodeOne(low + (high - low) * 0.75)).toBe(sign | (pattern + 1));
      }),
    );
  });

  it("overflows to infinity", () => {
    expect(encodeOne(Number.POSITIVE_INFINITY)).toBe(infinity);
    expect(encodeOne(-3.4028234e38)).toBe(0x8000 | infinity);
    expect(values[infinity]).toBe(Number.POSITIVE_INFINITY);
  });
});

it("converts some known halves", () => {
  const values = new Float32Array(5);
  decodeFloat16(Uint16Array.of(0x3c00, 0xc000, 0x7bff, 0x0001, 0x3555), values);
  expect([...values]).toEqual([1, -2, 65504, 2 ** -24, 0.333251953125]);
  decodeBfloat16(Uint16Array.of(0x3f80, 0xc000, 0x4049, 0x0001, 0x7f7f), values);
  expect([...values]).toEqual([1, -2, 3.140625, 2 ** -133, 3.3895313892515355e38]);
});

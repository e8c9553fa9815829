/** The two 16-bit floating-point formats of checkpoints, to and from 32 bits. */

const bits = new Uint32Array(1);
const float = new Float32Array(bits.buffer);

function floatOf(pattern: number): number {
  bits[0] = pattern;
  return float[0]!;
}

function patternOf(value: number): number {
  float[0] = value;
  return bits[0]!;
}

/** Writes the values of bfloat16 patterns into `target`. */
export function decodeBfloat16(source: Uint16Array, target: Float32Array): void {
  const patterns = new Uint32Array(target.buffer, target.byteOffset, target.length);
  for (let i = 0; i < source.length; i++) patterns[i] = source[i]! << 16;
}

/** Writes the bfloat16 patterns nearest to the values into `target`, ties to even. */
export function encodeBfloat16(source: Float32Array, target: Uint16Array): void {
  for (let i = 0; i < source.length; i++) {
    const value = source[i]!;
    const pattern = patternOf(value);
    target[i] = Number.isNaN(value) ? 0x7fc0 : (pattern + 0x7fff + ((pattern >>> 16) & 1)) >>> 16;
  }
}

/** Writes the values of IEEE half-precision patterns into `target`. */
export function decodeFloat16(source: Uint16Array, target: Float32Array): void {
  for (let i = 0; i < source.length; i++) target[i] = float16Value(source[i]!);
}

/** The value of an IEEE half-precision pattern. */
export function float16Value(pattern: number): number {
  const sign = pattern & 0x8000 ? -1 : 1;
  const exponent = (pattern >>> 10) & 0x1f;
  const fraction = pattern & 0x3ff;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  if (exponent === 31) return fraction === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN;
  return floatOf(((pattern & 0x8000) << 16) | ((exponent + 112) << 23) | (fraction << 13));
}

/** Writes the half-precision patterns nearest to the values into `target`, ties to even. */
export function encodeFloat16(source: Float32Array, target: Uint16Array): void {
  for (let i = 0; i < source.length; i++) target[i] = float16Pattern(source[i]!);
}

function float16Pattern(value: number): number {
  if (Number.isNaN(value)) return 0x7e00;
  const sign = (patternOf(value) >>> 16) & 0x8000;
  const size = Math.abs(value);
  // 65520 is half-way between the largest finite half, 65504, and what would be the next.
  if (size >= 65520) return sign | 0x7c00;
  // Below 2^-14 patterns count multiples of 2^-24. Adding 1.5 · 2^52 rounds to an integer, ties to even.
  if (size < 2 ** -14) return sign | (size * 2 ** 24 + 1.5 * 2 ** 52 - 1.5 * 2 ** 52);
  const pattern = patternOf(size) - (112 << 23);
  return sign | ((pattern + 0xfff + ((pattern >>> 13) & 1)) >>> 13);
}

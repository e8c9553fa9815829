/**
 * Document lengths in one byte, as Lucene stores them (`SmallFloat.intToByte4`): exact below 40,
 * above that with four significant binary digits, so that equal bytes give bit-equal scores.
 */

/** Lengths below this are stored exactly. */
const EXACT = 24;

/** The byte for a length. */
export function lengthToByte(length: number): number {
  if (length < EXACT) return length;
  const rest = length - EXACT;
  const bits = rest === 0 ? 0 : 32 - Math.clz32(rest);
  if (bits < 4) return EXACT + rest;
  const shift = bits - 4;
  return EXACT + (((rest >>> shift) & 0x07) | ((shift + 1) << 3));
}

/** The length that a byte represents: the smallest one stored as this byte. */
export function byteToLength(byte: number): number {
  if (byte < EXACT) return byte;
  const code = byte - EXACT;
  const shift = (code >>> 3) - 1;
  if (shift < 0) return EXACT + code;
  return EXACT + ((code & 0x07) | 0x08) * 2 ** shift;
}

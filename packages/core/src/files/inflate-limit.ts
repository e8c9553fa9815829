/**
 * How much compressed bytes may inflate to. Deflate reaches 1,032 times; what people record, and
 * corpora, stay far below 250 times, and small pieces may be as regular as they like.
 */
import { gunzipSync } from "node:zlib";

/** The most that bytes of ours or of a data file inflate to, as a multiple. */
export const INFLATED_TIMES = 250;
/** What may be inflated to whatever its size is. */
const ALWAYS_BYTES = 2 ** 24;

/** The most bytes that compressed ones of this length may inflate to. */
export const inflatedLimit = (length: number): number =>
  Math.max(ALWAYS_BYTES, INFLATED_TIMES * length);

/** Unpacks gzip within the limit. */
export function gunzipWithin(bytes: Buffer): Buffer {
  try {
    return gunzipSync(bytes, { maxOutputLength: inflatedLimit(bytes.length) });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ERR_BUFFER_TOO_LARGE") throw error;
    throw new Error(
      `it inflates to more than ${INFLATED_TIMES} times its size, or than memory holds; if that is right, unpack it with gunzip and use the plain file`,
      { cause: error },
    );
  }
}

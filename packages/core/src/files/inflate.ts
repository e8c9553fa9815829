/**
 * How much compressed bytes may inflate to. Deflate reaches 1,032 times; what people record, and
 * corpora, stay far below 250 times, and small pieces may be as regular as they like.
 */
import { gunzipSync, inflateRawSync } from "node:zlib";

// Members of a zip archive in memory: as much of the format as jars and wheels use.

const END = 0x06054b50;
const ENTRY = 0x02014b50;
const END_BYTES = 22;

/** Where the members of a zip are described, by name. */
export function zipMembers(bytes: Buffer): ReadonlyMap<string, number> {
  let end = bytes.length - END_BYTES;
  while (end >= 0 && bytes.readUInt32LE(end) !== END) end--;
  if (end < 0) throw new Error("it has no zip directory");
  const entries = new Map<string, number>();
  let at = bytes.readUInt32LE(end + 16);
  for (let left = bytes.readUInt16LE(end + 10); left > 0; left--) {
    if (bytes.readUInt32LE(at) !== ENTRY) throw new Error(`its zip directory is damaged at ${at}`);
    const nameLength = bytes.readUInt16LE(at + 28);
    const name = bytes.toString("utf8", at + 46, at + 46 + nameLength);
    entries.set(name, at);
    at += 46 + nameLength + bytes.readUInt16LE(at + 30) + bytes.readUInt16LE(at + 32);
  }
  return entries;
}

/** The content of the member that is described at `entry`, of at most `most` bytes. */
export function readZipMember(bytes: Buffer, entry: number, most?: number): Buffer {
  const packed = bytes.readUInt16LE(entry + 10) !== 0;
  const size = bytes.readUInt32LE(entry + 20);
  const local = bytes.readUInt32LE(entry + 42);
  const start = local + 30 + bytes.readUInt16LE(local + 26) + bytes.readUInt16LE(local + 28);
  const data = bytes.subarray(start, start + size);
  const limit = most ?? (packed ? inflatedLimit(data.length) : data.length);
  const content = packed ? inflateRawSync(data, { maxOutputLength: limit }) : data;
  if (content.length > limit) throw new Error(`a member has more than ${limit} bytes`);
  return content;
}

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

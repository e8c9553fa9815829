/**
 * Vectors on disk: a line that describes them, then the numbers. A file that is damaged or was made
 * from something else is treated as missing: the caller encodes again.
 */
import { mkdir } from "node:fs/promises";
import { dirname } from "node:path";
import { crc32 } from "node:zlib";
import { writeFileAtomically, writeFully } from "@pawl/core/files/atomic-file.js";
import { readRegular } from "@pawl/core/files/regular-file.js";
import { z } from "zod";

const MAGIC = "pawl-vectors-1";

const header = z.object({
  magic: z.literal(MAGIC),
  key: z.string(),
  count: z.int().min(0),
  dimension: z.int().min(1),
  crc: z.int(),
});

/** Rows of `dimension` numbers, one after another. */
export interface VectorTable {
  readonly dimension: number;
  readonly values: Float32Array;
}

/** Writes vectors; `key` identifies what they were made from. */
export async function saveVectors(path: string, key: string, table: VectorTable): Promise<void> {
  const { dimension, values } = table;
  const bytes = new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
  const count = values.length / dimension;
  const line = JSON.stringify({ magic: MAGIC, key, count, dimension, crc: crc32(bytes) });
  await mkdir(dirname(path), { recursive: true });
  await writeFileAtomically(path, async (handle) => {
    await writeFully(handle, Buffer.from(`${line}\n`));
    await writeFully(handle, bytes);
  });
}

/** Reads what `saveVectors` wrote with this key; undefined if there is nothing usable. */
export async function loadVectors(path: string, key: string): Promise<VectorTable | undefined> {
  let file: Buffer;
  try {
    file = readRegular(path);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return undefined;
    throw error;
  }
  const end = file.indexOf(10);
  const found = header.safeParse(parseJson(file.toString("utf8", 0, Math.max(0, end))));
  if (!found.success || found.data.key !== key) return undefined;
  const { count, dimension, crc } = found.data;
  const bytes = file.subarray(end + 1);
  if (bytes.length !== 4 * count * dimension || crc32(bytes) !== crc) return undefined;
  // Copied, because 4-byte numbers must start at a multiple of four.
  const values = new Float32Array(count * dimension);
  new Uint8Array(values.buffer).set(bytes);
  return { dimension, values };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // Not one of our files; the caller checks for that.
    return undefined;
  }
}

/**
 * Vectors of texts on disk: the same text is encoded once per encoder, across processes.
 *
 * Each encoder has its own folder, named after its checksum and dimension. Each process appends to
 * its own file there, so that concurrent processes do not conflict. Records have a fixed length and
 * a checksum each, so that one torn by a kill is skipped and the others are kept. Many small files
 * are merged when next opened.
 */
import { createHash, randomBytes } from "node:crypto";
import { appendFile, mkdir, readdir, readFile, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { crc32 } from "node:zlib";
import { writeFileAtomically, writeFully } from "@pawl/core/files/atomic-file.js";
import { readRegular } from "@pawl/core/files/regular-file.js";
import { z } from "zod";
import type { Encoder } from "./encoder.js";

// Vectors on disk: a line that describes them, then the numbers. A file that is damaged or was made
// from something else is treated as missing: the caller encodes again.

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

const HASH_BYTES = 32;
const CRC_BYTES = 4;
/** With more files than this they are merged into one. */
const MOST_FILES = 16;
/** Maximum number of vectors in memory: further texts are encoded but not kept. */
const MOST_VECTORS = 200_000;
const ENDING = ".vectors";

/** An encoder with a cache, and its statistics. */
export interface CachedEncoder extends Encoder {
  readonly statistics: {
    /** Texts whose vectors were cached. */
    readonly hits: number;
    /** Texts that were encoded. */
    readonly misses: number;
    /** Torn or damaged records on disk, which were skipped. */
    readonly damaged: number;
  };
}

/** The encoder with its vectors cached in `folder`. */
export async function cacheVectors(encoder: Encoder, folder: string): Promise<CachedEncoder> {
  const { dimension, name } = encoder;
  const place = join(folder, sha256(`${name} ${dimension}`).toString("hex").slice(0, 32));
  await mkdir(place, { recursive: true });
  const statistics = { hits: 0, misses: 0, damaged: 0 };
  const known = new Map<string, Float32Array>();
  const files = (await readdir(place)).filter((file) => file.endsWith(ENDING)).sort();
  for (const file of files) {
    // Another process may have merged and removed it meanwhile.
    const bytes = await readFile(join(place, file)).catch(nothingThere);
    statistics.damaged += readRecords(bytes, dimension, known);
  }
  if (files.length > MOST_FILES) await joinFiles(place, files, known, dimension);
  const own = join(place, newName());

  return {
    name,
    dimension,
    statistics,
    async encode(texts) {
      const keys = texts.map((text) => sha256(text).toString("base64"));
      const missing = new Map<string, string>();
      for (const [at, key] of keys.entries()) {
        if (!known.has(key)) missing.set(key, texts[at]!);
      }
      statistics.misses += missing.size;
      statistics.hits += texts.length - missing.size;
      const fresh = new Map<string, Float32Array>();
      if (missing.size > 0) {
        const vectors = await encoder.encode([...missing.values()]);
        for (const [at, key] of [...missing.keys()].entries()) fresh.set(key, vectors[at]!);
        if (known.size + fresh.size <= MOST_VECTORS) {
          await appendFile(own, encodeRecords(fresh, dimension));
          for (const [key, vector] of fresh) known.set(key, vector);
        }
      }
      return keys.map((key) => known.get(key) ?? fresh.get(key)!);
    },
  };
}

const newName = (): string => `${process.pid}-${randomBytes(6).toString("hex")}${ENDING}`;

const sha256 = (text: string): Buffer => createHash("sha256").update(text).digest();

function nothingThere(error: NodeJS.ErrnoException): Buffer {
  if (error.code !== "ENOENT") throw error;
  return Buffer.alloc(0);
}

/** One record per text: its hash, its vector, and the checksum of both. */
function encodeRecords(vectors: ReadonlyMap<string, Float32Array>, dimension: number): Buffer {
  const length = HASH_BYTES + 4 * dimension + CRC_BYTES;
  const bytes = Buffer.alloc(vectors.size * length);
  let at = 0;
  for (const [key, vector] of vectors) {
    Buffer.from(key, "base64").copy(bytes, at);
    for (const [i, value] of vector.entries()) bytes.writeFloatLE(value, at + HASH_BYTES + 4 * i);
    const body = bytes.subarray(at, at + length - CRC_BYTES);
    bytes.writeUInt32LE(crc32(body), at + length - CRC_BYTES);
    at += length;
  }
  return bytes;
}

/** Adds the intact records of a file to `known`; returns how many were damaged. */
function readRecords(bytes: Buffer, dimension: number, known: Map<string, Float32Array>): number {
  const length = HASH_BYTES + 4 * dimension + CRC_BYTES;
  let damaged = bytes.length % length === 0 ? 0 : 1;
  for (let at = 0; at + length <= bytes.length && known.size < MOST_VECTORS; at += length) {
    const body = bytes.subarray(at, at + length - CRC_BYTES);
    if (crc32(body) !== bytes.readUInt32LE(at + length - CRC_BYTES)) {
      damaged++;
      continue;
    }
    const vector = new Float32Array(dimension);
    for (let i = 0; i < dimension; i++) vector[i] = body.readFloatLE(HASH_BYTES + 4 * i);
    known.set(body.toString("base64", 0, HASH_BYTES), vector);
  }
  return damaged;
}

/**
 * Writes everything known into one file and removes the others; a process that is still writing
 * loses only its cache.
 */
async function joinFiles(
  place: string,
  files: readonly string[],
  known: ReadonlyMap<string, Float32Array>,
  dimension: number,
): Promise<void> {
  const joined = join(place, newName());
  await writeFileAtomically(joined, (handle) =>
    writeFully(handle, encodeRecords(known, dimension)),
  );
  for (const file of files) await rm(join(place, file), { force: true });
}

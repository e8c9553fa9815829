/**
 * Indexes on disk: named blocks of bytes in one file, written completely or not at all, each with a
 * checksum. A file that is damaged, of another version or from another source is treated as
 * missing: the caller rebuilds it.
 */
import {
  accessSync,
  closeSync,
  constants,
  fsyncSync,
  mkdirSync,
  openSync,
  readSync,
  renameSync,
  rmSync,
  writeSync,
} from "node:fs";
import { dirname } from "node:path";
import { crc32 } from "node:zlib";
import { UserError } from "@pawl/core/errors.js";
import { sweepOnce, temporaryName } from "@pawl/core/files/atomic-file.js";
import { openRegular } from "@pawl/core/files/regular-file.js";
import { ANALYSER_VERSION } from "./analyser.js";
import type { Bm25Index } from "./bm25.js";

/** The start of every file; the number changes whenever the meaning of the blocks does. */
const MAGIC = "pawl-index-1";
/** An upper bound: headers are much shorter. */
const HEADER_BYTES = 1 << 16;
/** A system call transfers at most 2 GiB, so we use chunks of this size. */
const PIECE = 1 << 28;

/** Named blocks of bytes. */
export type Blocks = Readonly<Record<string, Uint8Array>>;

interface Header {
  readonly analyser: number;
  readonly key: string;
  readonly blocks: readonly {
    readonly name: string;
    readonly bytes: number;
    readonly crc: number;
  }[];
}

/** Rejects a folder in which no index can be stored, and says how to fix it. */
export function checkWritable(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true });
    accessSync(folder, constants.W_OK);
  } catch (error) {
    throw new UserError(
      `the index cannot be stored in ${folder}: ${(error as Error).message}. Set the option cache to a writable folder.`,
      { cause: error },
    );
  }
}

/** Writes an index and further blocks of the caller; `key` identifies what they were made from. */
export function saveIndex(path: string, key: string, index: Bm25Index, extra: Blocks = {}): void {
  const text = new TextEncoder();
  const blocks: Blocks = {
    ...extra,
    ids: text.encode(JSON.stringify(index.ids)),
    terms: text.encode(JSON.stringify([...index.terms.keys()])),
    idRank: asBytes(index.idRank),
    totals: text.encode(JSON.stringify([index.filledDocuments, index.totalTerms])),
    lengths: index.lengths,
    starts: asBytes(index.starts),
    documents: asBytes(index.documents),
    frequencies: asBytes(index.frequencies),
  };
  const header: Header = {
    analyser: ANALYSER_VERSION,
    key,
    blocks: Object.entries(blocks).map(([name, bytes]) => ({
      name,
      bytes: bytes.byteLength,
      crc: checksum(bytes),
    })),
  };
  const temporary = temporaryName(path, "tmp");
  try {
    mkdirSync(dirname(path), { recursive: true });
    sweepOnce(dirname(path));
    const file = openSync(temporary, "w");
    try {
      writeAll(file, text.encode(headerLine(header)));
      for (const bytes of Object.values(blocks)) writeAll(file, bytes);
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    renameSync(temporary, path);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw new UserError(
      `could not write the index to ${path}: ${(error as Error).message}. Free some space there or choose another folder for it.`,
      { cause: error },
    );
  }
}

/** Reads what `saveIndex` wrote with this key; otherwise returns why it cannot be used. */
export function loadIndex(
  path: string,
  key: string,
): { readonly index: Bm25Index; readonly extra: Blocks } | { readonly unusable: string } {
  let file: number;
  try {
    file = openRegular(path);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return { unusable: "there is none yet" };
    throw error;
  }
  try {
    const { header, bytes } = readHeader(file);
    if (header?.analyser !== ANALYSER_VERSION)
      return { unusable: "it was made by another version" };
    if (header.key !== key) return { unusable: "it was made from other files" };
    const blocks = readBlocks(file, header, bytes);
    if (typeof blocks === "string") return { unusable: `${blocks} is damaged` };
    return { index: toIndex(blocks), extra: blocks };
  } finally {
    closeSync(file);
  }
}

function toIndex(blocks: Blocks): Bm25Index {
  const text = new TextDecoder();
  const list = (name: string): unknown => JSON.parse(text.decode(blocks[name]));
  const ids = list("ids") as readonly string[];
  const terms = list("terms") as readonly string[];
  const [filledDocuments, totalTerms] = list("totals") as [number, number];
  return {
    ids,
    idRank: new Uint32Array(blocks.idRank!.buffer),
    lengths: blocks.lengths!,
    filledDocuments,
    totalTerms,
    terms: new Map(terms.map((term, number) => [term, number])),
    starts: new Uint32Array(blocks.starts!.buffer),
    documents: new Uint32Array(blocks.documents!.buffer),
    frequencies: new Uint16Array(blocks.frequencies!.buffer),
  };
}

/** The bytes of an array, as a block. */
export function asBytes(array: Float64Array | Uint32Array | Uint16Array): Uint8Array {
  return new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
}

function checksum(bytes: Uint8Array): number {
  let sum = 0;
  for (let at = 0; at < bytes.length; at += PIECE) sum = crc32(bytes.subarray(at, at + PIECE), sum);
  return sum;
}

function writeAll(file: number, bytes: Uint8Array): void {
  for (let done = 0; done < bytes.length; )
    done += writeSync(file, bytes, done, Math.min(PIECE, bytes.length - done));
}

function headerLine(header: Header): string {
  const json = JSON.stringify(header);
  return `${MAGIC} ${crc32(json)} ${json}\n`;
}

/** The first line of the file and its length; no header if it is not an intact one of ours. */
function readHeader(file: number): { readonly header?: Header; readonly bytes: number } {
  const start = Buffer.alloc(HEADER_BYTES);
  const read = readSync(file, start, 0, start.length, 0);
  const end = start.subarray(0, read).indexOf(10);
  const [magic, crc, ...rest] = start.toString("utf8", 0, Math.max(0, end)).split(" ");
  const json = rest.join(" ");
  if (magic !== MAGIC || Number(crc) !== crc32(json)) return { bytes: 0 };
  return { header: JSON.parse(json) as Header, bytes: end + 1 };
}

/** The blocks, each in its own memory, or the name of the first damaged one. */
function readBlocks(file: number, header: Header, from: number): Blocks | string {
  const blocks: Record<string, Uint8Array> = {};
  let position = from;
  for (const { name, bytes, crc } of header.blocks) {
    const block = new Uint8Array(bytes);
    let done = 0;
    while (done < bytes) {
      const read = readSync(file, block, done, Math.min(PIECE, bytes - done), position + done);
      if (read === 0) return `block ${name}`;
      done += read;
    }
    if (checksum(block) !== crc) return `block ${name}`;
    blocks[name] = block;
    position += bytes;
  }
  return blocks;
}

/** Files read in any order: in memory if they are small or packed, otherwise piece by piece. */
import { closeSync, fstatSync, readFileSync, readSync } from "node:fs";
import { UserError } from "@pawl/core/errors.js";
import { gunzipWithin } from "@pawl/core/files/inflate.js";
import { openRegular } from "@pawl/core/files/regular-file.js";

/** Smaller files are kept in memory. */
const KEEP_BELOW = 2 ** 28;
const CHUNK = 2 ** 22;

/** Bytes with random access. */
export interface ByteFile {
  readonly path: string;
  /** Changes when the file does. */
  readonly key: string;
  /** Size in bytes, uncompressed. */
  readonly size: number;
  read(start: number, end: number): Buffer;
}

/** Opens a file; `.gz` is decompressed into memory. */
export function openBytes(path: string): ByteFile {
  const file = openRegular(path);
  const { size, mtimeMs } = fstatSync(file);
  const key = `${size} ${mtimeMs}`;
  const packed = path.endsWith(".gz");
  if (!packed && size >= KEEP_BELOW)
    return { path, key, size, read: (start, end) => readRange(file, path, start, end) };
  const content = readFileSync(file);
  closeSync(file);
  const bytes = packed ? gunzipWithin(content) : content;
  return { path, key, size: bytes.length, read: (start, end) => bytes.subarray(start, end) };
}

function readRange(file: number, path: string, start: number, end: number): Buffer {
  const bytes = Buffer.allocUnsafe(end - start);
  for (let done = 0; done < bytes.length; ) {
    const read = readSync(file, bytes, done, bytes.length - done, start + done);
    if (read === 0) throw new UserError(`${path} became shorter while it was read; open it again.`);
    done += read;
  }
  return bytes;
}

/** The file's chunks in order, each with where it begins. */
export function* chunksOf({ size, read }: ByteFile): Generator<[offset: number, chunk: Buffer]> {
  for (let offset = 0; offset < size; offset += CHUNK)
    yield [offset, read(offset, Math.min(size, offset + CHUNK))];
}

/** Calls `onLine` with every line of a file, its place and its bytes. */
export function eachLine(
  file: ByteFile,
  onLine: (start: number, end: number, bytes: Buffer) => void,
): void {
  let start = 0;
  for (const [offset, chunk] of chunksOf(file)) {
    const line = (end: number): void => {
      // Only a line that began in an earlier chunk must be read again.
      onLine(
        start,
        end,
        start < offset ? file.read(start, end) : chunk.subarray(start - offset, end - offset),
      );
      start = end + 1;
    };
    for (let at = chunk.indexOf(10); at >= 0; at = chunk.indexOf(10, at + 1)) line(offset + at);
    if (offset + chunk.length >= file.size && start < file.size) line(file.size);
  }
}

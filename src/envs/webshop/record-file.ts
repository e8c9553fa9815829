/**
 * Large JSON files read record by record: one pass over the bytes finds where each record starts
 * and ends, and a record is read when it is needed. The full catalogue is over 5 GB, more than a
 * string can hold.
 */
import { fstatSync, readFileSync, readSync } from "node:fs";
import { gunzipWithin } from "../../inflate-limit.js";
import { openRegular } from "../../regular-file.js";
import { EnvError } from "../env.js";

/** Smaller files are kept in memory. */
const KEEP_BELOW = 2 ** 28;
const CHUNK = 2 ** 22;

/** Bytes with random access. */
export interface ByteSource {
  readonly path: string;
  readonly size: number;
  read(start: number, end: number): Buffer;
}

/**
 * The layout of a file: one array, one object whose values are the records, or a record per line.
 */
export type RecordForm = "array" | "object" | "lines";

/** Callback for each record: its position, and in an object the position of its key. */
type OnRecord = (start: number, end: number, keyStart: number, keyEnd: number) => void;

/** Opens a file; `.gz` is unpacked into memory. */
export function openBytes(path: string): ByteSource {
  try {
    const file = openRegular(path);
    const { size } = fstatSync(file);
    if (path.endsWith(".gz") || size < KEEP_BELOW) {
      const content = readFileSync(file);
      const bytes = path.endsWith(".gz") ? gunzipWithin(content) : content;
      return { path, size: bytes.length, read: (start, end) => bytes.subarray(start, end) };
    }
    return { path, size, read: (start, end) => readRange(file, path, start, end) };
  } catch (error) {
    throw new EnvError(
      `cannot read ${path}: ${(error as Error).message}. See \`pawl env info webshop\` for the files that are needed.`,
      { cause: error },
    );
  }
}

function readRange(file: number, path: string, start: number, end: number): Buffer {
  const bytes = Buffer.allocUnsafe(end - start);
  for (let done = 0; done < bytes.length; ) {
    const read = readSync(file, bytes, done, bytes.length - done, start + done);
    if (read === 0) throw new EnvError(`${path} became shorter while it was read; open it again.`);
    done += read;
  }
  return bytes;
}

/** Calls `onRecord` for every record of the file, in order. */
export function eachRecord(source: ByteSource, form: RecordForm, onRecord: OnRecord): void {
  if (form === "lines") eachLine(source, onRecord);
  else eachMember(source, form, onRecord);
}

function eachLine(source: ByteSource, onRecord: OnRecord): void {
  let start = 0;
  for (let offset = 0; offset < source.size; offset += CHUNK) {
    const chunk = source.read(offset, Math.min(source.size, offset + CHUNK));
    for (let at = chunk.indexOf(10); at >= 0; at = chunk.indexOf(10, at + 1)) {
      if (offset + at > start) onRecord(start, offset + at, 0, 0);
      start = offset + at + 1;
    }
  }
  if (start < source.size) onRecord(start, source.size, 0, 0);
}

function eachMember(source: ByteSource, form: RecordForm, onRecord: OnRecord): void {
  let depth = 0;
  let inText = false;
  let escaped = false;
  let start = 0;
  let textStart = 0;
  let textEnd = 0;
  let records = 0;
  for (let offset = 0; offset < source.size; offset += CHUNK) {
    const chunk = source.read(offset, Math.min(source.size, offset + CHUNK));
    for (let at = 0; at < chunk.length; at++) {
      const byte = chunk[at]!;
      if (inText) {
        if (escaped) escaped = false;
        else if (byte === 92) escaped = true;
        else if (byte === 34) {
          inText = false;
          if (depth === 1) textEnd = offset + at + 1;
        }
      } else if (byte === 34) {
        inText = true;
        if (depth === 1) textStart = offset + at;
      } else if (byte === 123 || byte === 91) {
        if (depth === 0 && byte !== (form === "array" ? 91 : 123)) throw wrongForm(source, form);
        if (depth === 1) start = offset + at;
        depth++;
      } else if (byte === 125 || byte === 93) {
        depth--;
        if (depth === 1) {
          records++;
          onRecord(start, offset + at + 1, textStart, textEnd);
        }
      } else if (depth === 0 && byte > 32 && byte < 128) {
        throw wrongForm(source, form);
      }
    }
  }
  if (depth !== 0 || inText || source.size === 0)
    throw new EnvError(
      `${source.path} ends in the middle of record ${records + 1}: the file was cut off. Download it again.`,
    );
}

function wrongForm(source: ByteSource, form: RecordForm): EnvError {
  return new EnvError(`${source.path} should hold one JSON ${form}, but contains something else.`);
}

/** One record of the file, parsed; `what` names it in the error if it is damaged. */
export function parseRecord(source: ByteSource, start: number, end: number, what: string): unknown {
  const text = source.read(start, end).toString("utf8");
  try {
    return JSON.parse(text);
  } catch (error) {
    // Python writes NaN and Infinity, which are not JSON.
    const repaired = text.replace(/"(?:[^"\\]|\\.)*"|-?\b(?:NaN|Infinity)\b/g, (part) =>
      part.startsWith('"') ? part : "null",
    );
    if (repaired !== text) return parseText(repaired, source, start, what);
    throw damaged(source, start, what, error);
  }
}

function parseText(text: string, source: ByteSource, start: number, what: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw damaged(source, start, what, error);
  }
}

function damaged(source: ByteSource, start: number, what: string, error: unknown): EnvError {
  return new EnvError(
    `${source.path}: ${what} at byte ${start} is damaged (${(error as Error).message}). Download the file again or remove the record.`,
    { cause: error },
  );
}

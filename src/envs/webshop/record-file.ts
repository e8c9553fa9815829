/**
 * Large JSON files read record by record: one pass over the bytes finds where each record starts
 * and ends, and a record is read when it is needed. The full catalogue is over 5 GB, more than a
 * string can hold.
 */
import { type ByteFile, chunksOf, eachLine, openBytes } from "../../search/byte-file.js";
import { EnvError } from "../env.js";

/**
 * The layout of a file: one array, one object whose values are the records, or a record per line.
 */
export type RecordForm = "array" | "object" | "lines";

/** Callback for each record: its position, and in an object the position of its key. */
type OnRecord = (start: number, end: number, keyStart: number, keyEnd: number) => void;

/** Opens a file; `.gz` is unpacked into memory. */
export function openRecords(path: string): ByteFile {
  try {
    return openBytes(path);
  } catch (error) {
    throw new EnvError(
      `cannot read ${path}: ${(error as Error).message}. See \`pawl env info webshop\` for the files that are needed.`,
      { cause: error },
    );
  }
}

/** Calls `onRecord` for every record of the file, in order. */
export function eachRecord(source: ByteFile, form: RecordForm, onRecord: OnRecord): void {
  if (form === "lines")
    eachLine(source, (start, end) => {
      if (end > start) onRecord(start, end, 0, 0);
    });
  else eachMember(source, form, onRecord);
}

function eachMember(source: ByteFile, form: RecordForm, onRecord: OnRecord): void {
  let depth = 0;
  let inText = false;
  let escaped = false;
  let start = 0;
  let textStart = 0;
  let textEnd = 0;
  let records = 0;
  for (const [offset, chunk] of chunksOf(source)) {
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

function wrongForm(source: ByteFile, form: RecordForm): EnvError {
  return new EnvError(`${source.path} should hold one JSON ${form}, but contains something else.`);
}

/** One record of the file, parsed; `what` names it in the error if it is damaged. */
export function parseRecord(source: ByteFile, start: number, end: number, what: string): unknown {
  const text = source.read(start, end).toString("utf8");
  // Python writes NaN and Infinity, which are not JSON.
  const repaired = (): string =>
    text.replace(/"(?:[^"\\]|\\.)*"|-?\b(?:NaN|Infinity)\b/g, (part) =>
      part.startsWith('"') ? part : "null",
    );
  try {
    return JSON.parse(text);
  } catch {
    try {
      return JSON.parse(repaired());
    } catch (error) {
      throw damaged(source, start, what, error);
    }
  }
}

function damaged(source: ByteFile, start: number, what: string, error: unknown): EnvError {
  return new EnvError(
    `${source.path}: ${what} at byte ${start} is damaged (${(error as Error).message}). Download the file again or remove the record.`,
    { cause: error },
  );
}

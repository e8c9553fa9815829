/**
 * Files with one JSON record per line: finds the position of each line and reads lines on demand.
 */
import { closeSync, fstatSync, readFileSync, readSync } from "node:fs";
import { UserError } from "../errors.js";
import { gunzipWithin } from "../inflate-limit.js";
import { openRegular } from "../regular-file.js";

/** Smaller files are kept in memory. */
const KEEP_BELOW = 2 ** 28;
const CHUNK = 2 ** 22;

/** A line: its text, its number (from 1), and its position in the file. */
export interface Line {
  readonly text: string;
  readonly number: number;
  readonly start: number;
  readonly end: number;
}

/** A file whose lines can be read in any order. */
export interface LineFile {
  readonly path: string;
  /** Changes when the file does. */
  readonly key: string;
  /** Size in bytes, uncompressed. */
  readonly size: number;
  /** Called with every line that is not blank. */
  each(onLine: (line: Line) => void): void;
  text(start: number, end: number): string;
}

/** Opens a file of lines; `.gz` is decompressed into memory. */
export function openLines(path: string): LineFile {
  try {
    const file = openRegular(path);
    const { size, mtimeMs } = fstatSync(file);
    const key = `${size} ${mtimeMs}`;
    const packed = path.endsWith(".gz");
    if (!packed && size >= KEEP_BELOW)
      return lineFile(path, key, size, (start, end) => readRange(file, path, start, end));
    const content = readFileSync(file);
    closeSync(file);
    const bytes = packed ? gunzipWithin(content) : content;
    return lineFile(path, key, bytes.length, (start, end) => bytes.subarray(start, end));
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const hint =
      code === "ERR_FS_FILE_TOO_LARGE" ? " Decompress it with gunzip and use the plain file." : "";
    throw new UserError(`cannot read ${path}: ${message}.${hint}`, { cause: error });
  }
}

function lineFile(
  path: string,
  key: string,
  size: number,
  read: (start: number, end: number) => Buffer,
): LineFile {
  return {
    path,
    key,
    size,
    each(onLine) {
      let start = 0;
      let number = 0;
      for (let offset = 0; offset < size; offset += CHUNK) {
        const chunk = read(offset, Math.min(size, offset + CHUNK));
        const line = (end: number): void => {
          // Only a line that began in an earlier chunk must be read again.
          const bytes =
            start < offset ? read(start, end) : chunk.subarray(start - offset, end - offset);
          const text = bytes.toString("utf8");
          number++;
          if (text.trim() !== "") onLine({ text, number, start, end });
          start = end + 1;
        };
        for (let at = chunk.indexOf(10); at >= 0; at = chunk.indexOf(10, at + 1)) line(offset + at);
        if (offset + CHUNK >= size && start < size) line(size);
      }
    },
    text: (start, end) => read(start, end).toString("utf8"),
  };
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

/** A line as a JSON object; errors name the file and the line. */
export function parseLine(
  file: LineFile,
  { text, number }: Pick<Line, "text" | "number">,
): Readonly<Record<string, unknown>> {
  let value: unknown;
  try {
    // Some files begin with a byte order mark, which counts as white space.
    value = JSON.parse(text.trim());
  } catch (error) {
    throw badLine(file, number, `is not JSON (${(error as Error).message})`);
  }
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw badLine(file, number, "is not a JSON object");
  return value as Readonly<Record<string, unknown>>;
}

/** The error for an invalid line. */
export function badLine(file: LineFile, number: number, problem: string): UserError {
  return new UserError(
    `${file.path}, line ${number} ${problem}. Correct or remove the line, or download the file again.`,
  );
}

/**
 * Files with one JSON record per line: finds the position of each line and reads lines on demand.
 */
import { UserError } from "../errors.js";
import { type ByteFile, eachLine, openBytes } from "./byte-file.js";

/** A line: its text, its number (from 1), and its position in the file. */
export interface Line {
  readonly text: string;
  readonly number: number;
  readonly start: number;
  readonly end: number;
}

/** A file whose lines can be read in any order. */
export interface LineFile extends Omit<ByteFile, "read"> {
  /** Called with every line that is not blank. */
  each(onLine: (line: Line) => void): void;
  text(start: number, end: number): string;
}

/** Opens a file of lines; `.gz` is decompressed into memory. */
export function openLines(path: string): LineFile {
  try {
    const file = openBytes(path);
    return {
      ...file,
      each(onLine) {
        let number = 0;
        eachLine(file, (start, end, bytes) => {
          const text = bytes.toString("utf8");
          number++;
          if (text.trim() !== "") onLine({ text, number, start, end });
        });
      },
      text: (start, end) => file.read(start, end).toString("utf8"),
    };
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const hint =
      code === "ERR_FS_FILE_TOO_LARGE" ? " Decompress it with gunzip and use the plain file." : "";
    throw new UserError(`cannot read ${path}: ${message}.${hint}`, { cause: error });
  }
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

/** A corpus: numbered passages to search, in memory or in a JSONL file of `{id, contents}`. */
import { UserError } from "@pawl/core/errors.js";
import { type ByteFile, eachLine, openBytes } from "./byte-file.js";

/** A text with its id; if the text has a title, it is the first line. */
export interface Passage {
  readonly id: string;
  readonly contents: string;
}

/** Passages by number. */
export interface Corpus {
  /** Its source, for people. */
  readonly name: string;
  /** Changes when the passages do; what is derived from them is cached under it. */
  readonly key: string;
  readonly count: number;
  /** Approximate size of the text in bytes. */
  readonly size: number;
  passage(number: number): Passage;
}

/** Where the lines of a file are: a pair of numbers for each passage. */
export interface Places {
  readonly starts: Float64Array;
  readonly ends: Float64Array;
}

/** A corpus of passages in memory. */
export function memoryCorpus(name: string, key: string, passages: readonly Passage[]): Corpus {
  return {
    name,
    key,
    count: passages.length,
    size: passages.reduce((sum, { contents }) => sum + contents.length, 0),
    passage: (number) => passages[number]!,
  };
}

/**
 * Reads every passage of a file once, in order, and returns their positions; an empty file is an
 * error.
 */
export function scanCorpus(file: LineFile, onPassage: (passage: Passage) => void): Places {
  const starts: number[] = [];
  const ends: number[] = [];
  file.each((line) => {
    onPassage(toPassage(file, line));
    starts.push(line.start);
    ends.push(line.end);
  });
  if (starts.length === 0)
    throw new UserError(
      `${file.path} has no passages: expected one {"id", "contents"} on every line.`,
    );
  return { starts: Float64Array.from(starts), ends: Float64Array.from(ends) };
}

/** The corpus in a file whose line positions are known. */
export function fileCorpus(file: LineFile, { starts, ends }: Places): Corpus {
  return {
    name: file.path,
    key: file.key,
    count: starts.length,
    size: file.size,
    passage: (number) =>
      toPassage(file, { text: file.text(starts[number]!, ends[number]!), number: number + 1 }),
  };
}

/** The corpus in a JSONL file. */
export function openCorpus(path: string): Corpus {
  const file = openLines(path);
  return fileCorpus(
    file,
    scanCorpus(file, () => undefined),
  );
}

function toPassage(file: LineFile, line: Pick<Line, "text" | "number">): Passage {
  const { id, contents } = parseLine(file, line);
  if (typeof id !== "string" && typeof id !== "number")
    throw badLine(
      file,
      line.number,
      `has no id: expected a string or a number, got ${JSON.stringify(id)}`,
    );
  if (typeof contents !== "string")
    throw badLine(file, line.number, `has no contents: expected a string, got ${typeof contents}`);
  return { id: String(id), contents };
}

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

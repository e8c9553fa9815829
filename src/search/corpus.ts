/** A corpus: numbered passages to search, in memory or in a JSONL file of `{id, contents}`. */
import { UserError } from "../errors.js";
import { badLine, type Line, type LineFile, openLines, parseLine } from "./corpus-lines.js";

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
